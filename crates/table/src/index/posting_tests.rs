//! Posting lists do as an ordered set, whatever form they have.
#![allow(clippy::expect_used)]

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn verify(posting: &Posting, model: &BTreeSet<u32>) {
    let wanted: Vec<u32> = model.iter().copied().collect();
    assert_eq!(posting.iter().collect::<Vec<_>>(), wanted);
    let mut backwards: Vec<u32> = posting.iter().rev().collect();
    backwards.reverse();
    assert_eq!(backwards, wanted);
    assert_eq!(posting.rows(), wanted.len() as u64);
    assert_eq!(posting.heap_bytes(), posting.count_bytes());
    if let Posting::Many(many) = posting {
        for pair in many.segments.windows(2) {
            assert!(pair[0].iter().next_back() < Some(pair[1].start), "segments follow each other");
        }
        let containers = |s: &Segment| s.iter().map(container_of).collect::<BTreeSet<u32>>();
        for segment in &many.segments {
            assert!(Some(segment.start) <= segment.iter().next());
            let shared = many.segments.iter().filter(|s| !containers(s).is_disjoint(&containers(segment)));
            assert_eq!(shared.count(), 1, "a container lies in one segment");
        }
    }
}

/// A run of row ids: how they start, how far apart they are, how many.
#[derive(Clone, Debug)]
struct Run {
    first: u32,
    step: u32,
    count: u32,
    insert: bool,
}

fn run() -> impl Strategy<Value = Run> {
    let first = (0_u32..6, 0_u32..65_536).prop_map(|(container, low)| container << 16 | low);
    let step = prop_oneof![Just(1_u32), 1_u32..40, 1_000_u32..20_000];
    (first, step, 1_u32..900, prop::bool::weighted(0.6)).prop_map(|(first, step, count, insert)| Run {
        first,
        step,
        count,
        insert,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn it_does_as_an_ordered_set(loaded in prop::collection::vec(run(), 1..4), runs in prop::collection::vec(run(), 0..12)) {
        let rows = |run: &Run| (0..run.count).map(|i| run.first + i * run.step).collect::<Vec<u32>>();
        let mut model: BTreeSet<u32> = loaded.iter().flat_map(rows).collect();
        let mut posting = Posting::from_sorted(model.iter().copied().collect()).expect("not empty");
        verify(&posting, &model);
        let held = (posting.clone(), model.clone());
        for run in &runs {
            for row in rows(run) {
                if run.insert {
                    posting.insert(row);
                    model.insert(row);
                } else if model.len() > 1 {
                    // Rows that are not there are passed over.
                    prop_assert!(!posting.remove(row));
                    model.remove(&row);
                }
            }
            verify(&posting, &model);
        }
        verify(&held.0, &held.1);
        let last = model.iter().next_back().copied().expect("not empty");
        for row in model.iter().filter(|r| **r != last) {
            prop_assert!(!posting.remove(*row));
        }
        prop_assert!(posting.remove(last));
    }
}

#[test]
fn many_rows_of_one_key_take_two_bytes_each_or_less() {
    // A million rows, every ninetieth of them; then every second.
    for (step, most) in [(90_usize, 2.4), (2, 0.3)] {
        let rows: Vec<u32> = (0..1_000_000).step_by(step).collect();
        let count = f64::from(u32::try_from(rows.len()).expect("small"));
        let bytes = Posting::from_sorted(rows).expect("not empty").heap_bytes();
        let each = f64::from(u32::try_from(bytes).expect("small")) / count;
        assert!(each < most, "{each} bytes a row");
    }
}
