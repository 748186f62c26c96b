//! Every file says what it is, is one idea long, and is named after that idea.

use syn::visit::{self, Visit};

use super::Finding;
use crate::workspace::SourceFile;

/// Lines of a file from which it wants a reason, and beyond which it must be split.
const LONG_FILE_LINES: usize = 500;
const MAX_FILE_LINES: usize = 800;
/// Lines of a function from which it wants a reason.
const LONG_FUNCTION_LINES: usize = 70;

/// Names that say where a thing was put instead of what it is.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager"];

/// Words of comments that say that something is not finished.
const UNFINISHED: &[&str] = &["TODO", "FIXME", "XXX", "HACK", "WIP"];

pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        findings.push(Finding::error(&file.path, "does not begin with `//!` and what it is"));
    }
    let lines = file.text.lines().count();
    if lines > MAX_FILE_LINES {
        findings.push(Finding::error(&file.path, format!("{lines} lines, more than {MAX_FILE_LINES}: split it")));
    } else if lines > LONG_FILE_LINES {
        findings.push(Finding::warning(&file.path, format!("{lines} lines, more than {LONG_FILE_LINES}")));
    }
    for part in file.path.split('/') {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        let words = name.split(['_', '-']).collect::<Vec<_>>();
        if EMPTY_NAMES.iter().any(|empty| words.last() == Some(empty) || words.first() == Some(empty)) {
            findings.push(Finding::error(&file.path, format!("`{name}` does not say what it is")));
        }
    }
    for (at, line) in file.text.lines().enumerate() {
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        let mut words = comment.split(|c: char| !c.is_alphanumeric());
        if let Some(word) = words.find(|word| UNFINISHED.contains(word)) {
            findings
                .push(Finding::error(format!("{}:{}", file.path, at + 1), format!("a comment says {word}: finish it")));
        }
    }
    if let Ok(syntax) = &file.syntax {
        let mut functions = Functions { file, findings: &mut findings };
        functions.visit_file(syntax);
    }
    findings
}

struct Functions<'a> {
    file: &'a SourceFile,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, name: &syn::Ident, block: &syn::Block) {
        let start = name.span().start().line;
        let lines = block.brace_token.span.close().end().line.saturating_sub(start) + 1;
        if lines > LONG_FUNCTION_LINES {
            self.findings.push(Finding::warning(
                format!("{}:{start}", self.file.path),
                format!("`{name}` has {lines} lines, more than {LONG_FUNCTION_LINES}"),
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<(bool, String)> {
        check(&SourceFile::new(path, text)).into_iter().map(|finding| (finding.warning, finding.message)).collect()
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_caught() {
        assert_eq!(messages("a/b.rs", "//! Rows.\n"), []);
        for text in ["", "// Rows.\n", "use x;\n//! Rows.\n", "\n//! Rows.\n"] {
            assert_eq!(messages("a/b.rs", text), [(false, "does not begin with `//!` and what it is".to_owned())]);
        }
    }

    #[test]
    fn long_files_warn_and_very_long_ones_fail() {
        let text = |lines: usize| format!("//! Rows.\n{}", "\n".repeat(lines - 1));
        assert_eq!(messages("a/b.rs", &text(500)), []);
        assert_eq!(messages("a/b.rs", &text(501)), [(true, "501 lines, more than 500".to_owned())]);
        assert_eq!(messages("a/b.rs", &text(801)), [(false, "801 lines, more than 800: split it".to_owned())]);
    }

    #[test]
    fn long_functions_warn() {
        let text = |lines: usize| format!("//! Rows.\nfn f() {{\n{}}}\n", "\n".repeat(lines - 2));
        assert_eq!(messages("a/b.rs", &text(70)), []);
        assert_eq!(messages("a/b.rs", &text(71)), [(true, "`f` has 71 lines, more than 70".to_owned())]);
    }

    #[test]
    fn what_is_not_finished_is_caught() {
        let (slashes, word) = ("/".repeat(2), "TODO");
        let text = format!("//! Rows.\nlet todo = 1; {slashes} a {word}: more\n{slashes} METHODOLOGY\n");
        assert_eq!(messages("a/b.rs", &text)[0].1, "a comment says TODO: finish it");
        assert_eq!(messages("a/b.rs", &text).len(), 1);
    }

    #[test]
    fn names_that_say_nothing_are_caught() {
        for path in ["a/util.rs", "a/http_utils.rs", "common/rows.rs", "a/helpers/x.rs", "a/cache_manager.rs"] {
            assert_eq!(messages(path, "//! Rows.\n").len(), 1, "{path}");
        }
        assert_eq!(messages("a/uncommon_rows.rs", "//! Rows.\n"), []);
    }
}
