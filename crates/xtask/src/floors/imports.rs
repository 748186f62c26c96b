//! Paths that code names, against what must be absent where it stands.
//!
//! Every path counts, in `use` or in place, through an alias or inside a macro's arguments. Code that is compiled for
//! tests only is free.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::Finding;
use super::table::{ABSENCES, Absence, BESIDE};
use crate::workspace::SourceFile;

pub(crate) fn check(folder: &str, file: &SourceFile) -> Vec<Finding> {
    let syntax = match &file.syntax {
        Ok(syntax) => syntax,
        Err(error) => return vec![Finding::error(&file.path, format!("does not parse: {error}"))],
    };
    if BESIDE.contains(&folder) || file.is_test() || file.path.ends_with("/build.rs") {
        return Vec::new();
    }
    let mut aliases = Aliases::default();
    aliases.visit_file(syntax);
    let mut walk = Walk { aliases: aliases.0, found: Vec::new() };
    walk.visit_file(syntax);

    let mut findings: Vec<Finding> = Vec::new();
    for (line, path) in walk.found {
        for absence in ABSENCES.iter().filter(|absence| binds(absence, folder)) {
            if absence.paths.iter().any(|forbidden| names(&path, forbidden)) {
                let finding = Finding::error(format!("{}:{line}", file.path), format!("`{path}`: {}", absence.reason));
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
                break;
            }
        }
    }
    findings
}

fn binds(absence: &Absence, folder: &str) -> bool {
    (absence.within.is_empty() || absence.within.contains(&folder)) && !absence.except.contains(&folder)
}

/// Whether naming `path` gives access to `forbidden`: it lies in it, or a glob reaches it.
fn names(path: &str, forbidden: &str) -> bool {
    let inside = |longer: &str, shorter: &str| {
        longer.strip_prefix(shorter).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    match path.strip_suffix("::*") {
        Some(glob) => inside(glob, forbidden) || inside(forbidden, glob),
        None => inside(path, forbidden),
    }
}

/// What `use` brings into a file: local name to full path.
#[derive(Default)]
struct Aliases(HashMap<String, String>);

impl<'ast> Visit<'ast> for Aliases {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !only_for_tests(item_attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        use_paths(&item.tree, &mut Vec::new(), &mut |path, local| {
            if let Some(local) = local {
                self.0.insert(local.to_owned(), path.to_owned());
            }
        });
    }
}

struct Walk {
    aliases: HashMap<String, String>,
    /// Line and full path, in source order.
    found: Vec<(usize, String)>,
}

impl Walk {
    fn note(&mut self, line: usize, path: &str) {
        let (first, rest) = path.split_once("::").map_or((path, None), |(first, rest)| (first, Some(rest)));
        let first = self.aliases.get(first).map_or(first, String::as_str);
        let full = rest.map_or_else(|| first.to_owned(), |rest| format!("{first}::{rest}"));
        self.found.push((line, canonical(&full)));
    }

    /// Paths in the arguments of a macro, which syn does not parse.
    fn tokens(&mut self, stream: TokenStream) {
        let mut path = String::new();
        let mut line = 0;
        let mut colons = 0;
        for tree in stream {
            match tree {
                TokenTree::Ident(ident) => {
                    if colons == 2 && !path.is_empty() {
                        path.push_str("::");
                    } else {
                        self.finish(line, &mut path);
                        line = ident.span().start().line;
                    }
                    path.push_str(&ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.finish(line, &mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.finish(line, &mut path);
                    colons = 0;
                }
            }
        }
        self.finish(line, &mut path);
    }

    fn finish(&mut self, line: usize, path: &mut String) {
        if path.contains("::") || self.aliases.contains_key(path.as_str()) {
            let whole = std::mem::take(path);
            self.note(line, &whole);
        }
        path.clear();
    }
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !only_for_tests(item_attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !only_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let line = item.use_token.span.start().line;
        use_paths(&item.tree, &mut Vec::new(), &mut |path, _| self.found.push((line, canonical(path))));
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        self.found.push((item.ident.span().start().line, item.ident.to_string()));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let joined = path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>().join("::");
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.note(line, &joined);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        visit::visit_macro(self, item);
        self.tokens(item.tokens.clone());
    }
}

/// `core` and `alloc` are named as parts of `std`.
fn canonical(path: &str) -> String {
    match path.split_once("::") {
        Some(("core" | "alloc", rest)) => format!("std::{rest}"),
        _ => path.to_owned(),
    }
}

/// Calls `each(full path, local name)` for every leaf of a `use` tree; a glob's path ends in `::*`.
fn use_paths(tree: &syn::UseTree, prefix: &mut Vec<String>, each: &mut dyn FnMut(&str, Option<&str>)) {
    let join = |prefix: &[String], last: &str| {
        if last == "self" || prefix.is_empty() {
            if prefix.is_empty() { last.to_owned() } else { prefix.join("::") }
        } else {
            format!("{}::{last}", prefix.join("::"))
        }
    };
    match tree {
        syn::UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            use_paths(&path.tree, prefix, each);
            prefix.pop();
        }
        syn::UseTree::Name(name) => {
            let ident = name.ident.to_string();
            let local = if ident == "self" { prefix.last().cloned() } else { Some(ident.clone()) };
            each(&join(prefix, &ident), local.as_deref());
        }
        syn::UseTree::Rename(rename) => {
            each(&join(prefix, &rename.ident.to_string()), Some(&rename.rename.to_string()));
        }
        syn::UseTree::Glob(_) => each(&join(prefix, "*"), None),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| use_paths(tree, prefix, each)),
    }
}

fn item_attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn only_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg")
            && (condition == "test"
                || (condition.starts_with("all") && condition.contains("test") && !condition.contains("not")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(folder: &str, source: &str) -> Vec<String> {
        let file = SourceFile::new(&format!("crates/{folder}/src/lib.rs"), source);
        check(folder, &file)
            .into_iter()
            .map(|finding| {
                let line = finding.place.rsplit(':').next().unwrap_or_default();
                format!("{line} {}", finding.message.split(": ").next().unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn a_clock_on_a_lower_floor_is_caught_in_every_spelling() {
        assert_eq!(caught("table", "use std::time::Instant;"), ["1 `std::time::Instant`"]);
        assert_eq!(caught("table", "use std::{time::{Duration, SystemTime as T}};"), ["1 `std::time::SystemTime`"]);
        assert_eq!(caught("table", "use std::time::*;"), ["1 `std::time::*`"]);
        assert_eq!(caught("table", "fn f() {\n std::time::Instant::now(); }"), ["2 `std::time::Instant::now`"]);
        assert_eq!(
            caught("table", "use std::time;\nfn f() { time::Instant::now(); }"),
            ["2 `std::time::Instant::now`"]
        );
        assert_eq!(
            caught("table", "fn f() { println!(\"{:?}\", std::time::SystemTime::now()); }"),
            ["1 `std::time::SystemTime::now`"]
        );
        assert_eq!(
            caught("table", "use std::time::{self};\nfn f() { dbg!(time::Instant::now()); }"),
            ["2 `std::time::Instant::now`"]
        );
    }

    #[test]
    fn runtime_files_and_randomness_on_a_lower_floor_are_caught() {
        assert_eq!(caught("types", "use tokio::sync::Mutex;"), ["1 `tokio::sync::Mutex`"]);
        assert_eq!(caught("types", "fn f() { let _ = rand::random::<u8>(); }"), ["1 `rand::random`"]);
        assert_eq!(caught("ring", "fn f() { std::fs::read(\"x\"); }"), ["1 `std::fs::read`"]);
        assert_eq!(caught("ring", "extern crate rand;"), ["1 `rand`"]);
    }

    #[test]
    fn durations_and_likewise_named_things_are_free() {
        assert!(
            caught("types", "use std::time::Duration;\nfn random() {}\nfn f(tokio_like: u8) { random() }").is_empty()
        );
        assert!(caught("types", "mod tests_of_time {}\nuse crate::rand_rows::Row;").is_empty());
    }

    #[test]
    fn tests_are_free() {
        assert!(caught("table", "#[cfg(test)]\nmod tests { use std::time::Instant; }").is_empty());
        assert_eq!(
            caught("table", "#[cfg(not(test))]\nmod real { use std::time::Instant; }"),
            ["2 `std::time::Instant`"]
        );
        let file = SourceFile::new("crates/table/src/chunk_tests.rs", "use std::fs;");
        assert!(check("table", &file).is_empty());
    }

    #[test]
    fn sockets_belong_to_doors_and_origins() {
        let source = "use tokio::net::TcpStream;";
        assert_eq!(caught("node", source), ["1 `tokio::net::TcpStream`"]);
        assert_eq!(caught("sql", source), ["1 `tokio::net::TcpStream`"]);
        assert!(caught("server", source).is_empty());
        assert!(caught("node", "use std::net::SocketAddr;").is_empty());
    }

    #[test]
    fn files_and_environment_belong_to_few() {
        assert_eq!(caught("node", "fn f() { std::fs::read(\"x\"); }"), ["1 `std::fs::read`"]);
        assert!(caught("origin", "fn f() { std::fs::read(\"x\"); }").is_empty());
        assert_eq!(caught("server", "fn f() { std::env::var(\"X\"); }"), ["1 `std::env::var`"]);
        assert!(caught("cachesql", "fn f() { std::env::var(\"X\"); }").is_empty());
    }
}
