//! Members that are not equal when all is quiet.

/// What one member has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRows {
    /// The member.
    pub node: String,
    /// Its log index.
    pub index: u64,
    /// Its rows, by table.
    pub rows: Vec<Vec<String>>,
}

/// The first member that has something other than the first one.
pub fn unequal(members: &[MemberRows]) -> Result<(), String> {
    let Some((first, others)) = members.split_first() else { return Ok(()) };
    for other in others {
        if (other.index, &other.rows) != (first.index, &first.rows) {
            return Err(format!("members are not equal: {first:?} and {other:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: &str, index: u64, rows: &[&str]) -> MemberRows {
        MemberRows { node: node.into(), index, rows: vec![rows.iter().map(|row| (*row).to_owned()).collect()] }
    }

    #[test]
    fn equal_members_are_equal() {
        assert_eq!(unequal(&[]), Ok(()));
        assert_eq!(unequal(&[member("a", 3, &["1|2"]), member("b", 3, &["1|2"])]), Ok(()));
    }

    #[test]
    fn other_rows_or_another_index_are_found() {
        assert!(unequal(&[member("a", 3, &["1|2"]), member("b", 3, &["1|3"])]).is_err());
        assert!(unequal(&[member("a", 3, &["1|2"]), member("b", 3, &["1|2"]), member("c", 3, &[])]).is_err());
        assert!(unequal(&[member("a", 3, &["1|2"]), member("b", 4, &["1|2"])]).is_err());
    }
}
