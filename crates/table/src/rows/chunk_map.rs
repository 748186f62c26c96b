//! Slots of chunks, in blocks: a write copies one block and the list of blocks, not every slot of a large table.

use std::sync::Arc;

use super::chunk::Slot;

const BLOCK_SLOTS: usize = 32;

type Block = Vec<Option<Slot>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkMap {
    blocks: Vec<Arc<Block>>,
    /// Slots that were ever used; those that fell free count too.
    length: usize,
}

impl ChunkMap {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Slot> {
        self.blocks.get(slot / BLOCK_SLOTS)?.get(slot % BLOCK_SLOTS)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Slot> {
        let block = self.blocks.get_mut(slot / BLOCK_SLOTS)?;
        Arc::make_mut(block).get_mut(slot % BLOCK_SLOTS)?.as_mut()
    }

    /// Fills, replaces or empties a slot.
    pub(crate) fn set(&mut self, slot: usize, content: Option<Slot>) {
        let block = slot / BLOCK_SLOTS;
        if self.blocks.len() <= block {
            self.blocks.resize_with(block + 1, Arc::default);
        }
        let block = Arc::make_mut(&mut self.blocks[block]);
        let place = slot % BLOCK_SLOTS;
        if block.len() <= place {
            block.reserve_exact(BLOCK_SLOTS - block.len());
            block.resize(place + 1, None);
        }
        block[place] = content;
        self.length = self.length.max(slot + 1);
    }

    /// The slots that hold a chunk, in order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &Slot)> {
        self.blocks.iter().enumerate().flat_map(|(b, block)| {
            block.iter().enumerate().filter_map(move |(i, slot)| Some((b * BLOCK_SLOTS + i, slot.as_ref()?)))
        })
    }

    /// Bytes of the blocks themselves.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Arc<Block>>()
            + self.blocks.len() * (16 + size_of::<Block>() + BLOCK_SLOTS * size_of::<Option<Slot>>())
    }
}
