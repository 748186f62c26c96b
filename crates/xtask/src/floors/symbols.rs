//! Which symbols a crate defines, found by parsing it: modules, functions, types, their methods, variants and fields.

use std::collections::HashSet;

use crate::workspace::Crate;

/// Paths within one crate, such as `snapshot::GroupSnapshot::apply`.
pub(crate) struct Symbols(HashSet<Vec<String>>);

impl Symbols {
    pub(crate) fn of(one: &Crate) -> Self {
        let mut symbols = Self(HashSet::new());
        let source_root = format!("crates/{}/src/", one.folder);
        for file in one.files.iter().filter(|file| !file.is_test()) {
            let (Some(inside), Ok(syntax)) = (file.path.strip_prefix(&source_root), &file.syntax) else { continue };
            let mut module: Vec<String> = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if matches!(module.last().map(String::as_str), Some("lib" | "main" | "mod")) {
                module.pop();
            }
            if !module.is_empty() {
                symbols.0.insert(module.clone());
            }
            symbols.items(&module, &syntax.items);
        }
        symbols
    }

    /// Whether a symbol can be called that. Modules on the way may be left out, as re-exports do; a method needs its
    /// type, unless it is named alone.
    pub(crate) fn contains(&self, reference: &[&str]) -> bool {
        self.0.iter().any(|path| {
            let mut rest = path.as_slice();
            let in_order = reference.iter().all(|wanted| match rest.iter().position(|part| part == wanted) {
                Some(at) => {
                    rest = &rest[at + 1..];
                    true
                }
                None => false,
            });
            in_order && rest.is_empty() && path.last().map(String::as_str) == reference.last().copied()
        })
    }

    fn add(&mut self, module: &[String], names: &[&syn::Ident]) {
        let mut path = module.to_vec();
        path.extend(names.iter().map(ToString::to_string));
        self.0.insert(path);
    }

    fn items(&mut self, module: &[String], items: &[syn::Item]) {
        for item in items {
            match item {
                syn::Item::Fn(item) => self.add(module, &[&item.sig.ident]),
                syn::Item::Const(item) => self.add(module, &[&item.ident]),
                syn::Item::Static(item) => self.add(module, &[&item.ident]),
                syn::Item::Type(item) => self.add(module, &[&item.ident]),
                syn::Item::Struct(item) => {
                    self.add(module, &[&item.ident]);
                    for field in item.fields.iter().filter_map(|field| field.ident.as_ref()) {
                        self.add(module, &[&item.ident, field]);
                    }
                }
                syn::Item::Enum(item) => {
                    self.add(module, &[&item.ident]);
                    item.variants.iter().for_each(|variant| self.add(module, &[&item.ident, &variant.ident]));
                }
                syn::Item::Trait(item) => {
                    self.add(module, &[&item.ident]);
                    for method in &item.items {
                        if let syn::TraitItem::Fn(method) = method {
                            self.add(module, &[&item.ident, &method.sig.ident]);
                        }
                    }
                }
                syn::Item::Impl(item) => self.methods(module, item),
                syn::Item::Mod(item) => {
                    let mut inner = module.to_vec();
                    inner.push(item.ident.to_string());
                    if let Some((_, items)) = &item.content {
                        self.items(&inner, items);
                    }
                    self.0.insert(inner);
                }
                _ => {}
            }
        }
    }

    fn methods(&mut self, module: &[String], item: &syn::ItemImpl) {
        let syn::Type::Path(of) = &*item.self_ty else { return };
        let Some(of) = of.path.segments.last() else { return };
        for inner in &item.items {
            match inner {
                syn::ImplItem::Fn(method) => self.add(module, &[&of.ident, &method.sig.ident]),
                syn::ImplItem::Const(constant) => self.add(module, &[&of.ident, &constant.ident]),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::SourceFile;

    #[test]
    fn definitions_are_found_and_others_are_not() {
        let source = "//! X.\npub struct Table { rows: u8 }\nimpl Table { fn get(&self) {} }\nimpl<T> Walk for Table { fn walk() {} }\n\
            enum Kind { Fast }\ntrait Walk { fn walk(); }\nconst LIMIT: u8 = 1;\nmod inner { pub fn deep() {} }";
        let one = Crate {
            folder: "table".into(),
            manifest: toml::Table::new(),
            files: vec![
                SourceFile::new("crates/table/src/chunk/table.rs", source),
                SourceFile::new("crates/table/src/lib.rs", "//! X.\nfn top() {}"),
                SourceFile::new("crates/table/src/chunk_tests.rs", "//! X.\nfn only_in_tests() {}"),
            ],
        };
        let symbols = Symbols::of(&one);
        for there in [
            "top",
            "chunk::table",
            "chunk::table::Table",
            "Table",
            "Table::get",
            "Table::rows",
            "Table::walk",
            "Kind::Fast",
            "Walk::walk",
            "LIMIT",
            "inner::deep",
            "deep",
            "chunk::Table::get",
        ] {
            assert!(symbols.contains(&there.split("::").collect::<Vec<_>>()), "{there}");
        }
        for gone in ["Tables", "Table::put", "Kind::Slow", "get::Table", "only_in_tests", "chunk", "other::Table"] {
            assert!(!symbols.contains(&gone.split("::").collect::<Vec<_>>()), "{gone}");
        }
    }
}
