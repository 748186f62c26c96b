//! Documents made from the definition of the options: the annotated sample, the reference page, and the short list that the
//! command line's help shows.

use std::fmt::Write as _;

use super::options::{Kind, OptionDefinition, SECTIONS, Section};
use super::original::KEYS;

const WIDTH: usize = 100;

/// Words that exclude others of the sample, so that they stand in it as comments.
const ALTERNATIVES: [&str; 4] = ["file", "format", "null", "delimiter"];

/// An annotated `cachesql.toml` that uses every word. What this version does not serve stands in it as comments.
pub fn sample() -> String {
    let mut out = String::from(
        "# Every word of cachesql.toml, with an example. Made from the program's definition of its options: `cargo xtask docs`.\n\
         # Durations are written \"250ms\", \"30s\", \"10m\", \"1h30m\", \"2d\"; sizes \"64MiB\", \"8GiB\", \"1GB\".\n\
         # Secrets are { env = \"NAME\" } or { file = \"PATH\" }. Paths are relative to this file.\n",
    );
    for section in SECTIONS {
        let served = section.word != "caches";
        let comment = if served { "" } else { "# " };
        out.push('\n');
        push_wrapped(&mut out, "# ", section.about);
        let _ = writeln!(out, "{comment}[{}]", header(section));
        for option in section.options {
            push_sample_option(&mut out, option, served);
        }
    }
    out
}

fn push_sample_option(out: &mut String, option: &OptionDefinition, section_is_served: bool) {
    push_wrapped(out, "# ", option.about);
    if let Some(why) = option.not_served {
        push_wrapped(out, "# ", &format!("This version does not serve {why}."));
    } else if !option.default.text().is_empty() {
        push_wrapped(out, "# ", &format!("Default: {}.", option.default.text()));
    }
    let comment = option.not_served.is_some() || !section_is_served || ALTERNATIVES.contains(&option.name);
    let _ = writeln!(out, "{}{} = {}", if comment { "# " } else { "" }, option.name, option.example);
}

fn header(section: &Section) -> String {
    match section.named {
        Some(name) => format!("{}.{name}", section.word),
        None => section.word.to_owned(),
    }
}

/// `docs/configuration.md`.
pub fn page() -> String {
    let mut out = String::from(
        "# Configuration\n\n\
         <!-- Made from the program's definition of its options: `cargo xtask docs`. Change it there. -->\n\n\
         `cachesql serve FILE` reads one file. `cachesql check FILE` says everything that is wrong with it, each with file, line \
         and column, and warns of files that cannot be read and of environment variables of secrets that are not set where it \
         runs. [`cachesql.toml`](cachesql.toml) is an annotated sample.\n\n\
         - Durations: `\"250ms\"`, `\"30s\"`, `\"10m\"`, `\"1h30m\"`, `\"2d\"`. Sizes: `\"64MiB\"`, `\"8GiB\"`, `\"1GB\"`.\n\
         - Secrets: `{ env = \"NAME\" }` or `{ file = \"PATH\" }`, never the secret itself.\n\
         - Paths are relative to the file.\n\
         - An unknown word, a wrong type, a reference to something that is not there: all are errors. Words of features that \
         this version does not serve are known, and refused by name.\n\n\
         ## cachesql.toml\n",
    );
    for section in SECTIONS {
        let title = if section.named.is_some() { format!("{}.NAME", section.word) } else { section.word.to_owned() };
        let _ = writeln!(out, "\n### [{title}]\n\n{}\n", section.about);
        out.push_str("| word | takes | default | what it does |\n| --- | --- | --- | --- |\n");
        for option in section.options {
            let about = match option.not_served {
                Some(why) => format!("{} *This version does not serve {why}.*", option.about),
                None => option.about.to_owned(),
            };
            let (takes, default) = (cell(&takes(option.kind)), cell(&option.default.text()));
            let _ = writeln!(out, "| `{}` | {takes} | {default} | {} |", option.name, cell(&about));
        }
    }
    push_original(&mut out);
    out
}

fn push_original(out: &mut String) {
    out.push_str(
        "\n## config.properties of the original CacheSQL\n\n\
         `cachesql serve config.properties` starts from the original server's file as it is. It is read as Java reads \
         properties; in UTF-8, or in ISO-8859-1 when it is not valid UTF-8. Keys without meaning here are accepted and logged; \
         unknown keys are errors.\n\n\
         | key | here |\n| --- | --- |\n",
    );
    for key in KEYS {
        let prefix = if key.meaningless { "*No meaning here.* " } else { "" };
        let _ = writeln!(out, "| `{}` | {prefix}{} |", key.key, cell(key.about));
    }
    out.push_str(
        "\nThe routing client's `cachesql.properties` is understood too: nodes are called by the host:port of their URLs, and \
         `--node` says which one is started. Its tables need `cache.table.<T>.sql` in the same file.\n",
    );
}

/// What an option takes, as a table of a page says it.
fn takes(kind: Kind) -> String {
    match kind {
        Kind::Duration => "duration".into(),
        Kind::Size => "size".into(),
        other => other.expected(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The sections and their words in a few lines, for the help of the command line.
pub fn summary() -> String {
    let mut out = String::from("Words of cachesql.toml (docs/configuration.md explains them):\n");
    for section in SECTIONS {
        let title =
            if section.named.is_some() { format!("[{}.NAME]", section.word) } else { format!("[{}]", section.word) };
        let words = |served: bool| {
            let served_here = section.word != "caches";
            let options = section.options.iter().filter(|o| (o.not_served.is_none() && served_here) == served);
            options.map(|o| o.name).collect::<Vec<_>>().join(" ")
        };
        let (served, refused) = (words(true), words(false));
        let refused = if refused.is_empty() { refused } else { format!(" (not served yet: {refused})") };
        let _ = writeln!(out, "  {title:<15} {}", format!("{served}{refused}").trim_start());
    }
    out
}

fn push_wrapped(out: &mut String, prefix: &str, text: &str) {
    let mut line = String::from(prefix);
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = String::from(prefix);
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{TableSource, options, read_bytes};

    /// Where a generated document stands in the source tree, and what it must say.
    fn documents() -> [(std::path::PathBuf, String); 2] {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        [(docs.join("configuration.md"), page()), (docs.join("cachesql.toml"), sample())]
    }

    #[test]
    fn documents_are_current() {
        for (path, expected) in documents() {
            if std::env::var_os("CACHESQL_WRITE_DOCS").is_some() {
                std::fs::write(&path, &expected).expect("written");
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == expected, "{} is out of date: run `cargo xtask docs`", path.display());
        }
    }

    #[test]
    fn the_sample_is_sound_and_uses_every_word() {
        let text = sample();
        let configuration = read_bytes(Path::new("sample.toml"), text.as_bytes()).expect("sound");
        let table = configuration.tables.first().expect("a table");
        assert_eq!(table.name, "KCA2");
        assert!(matches!(&table.source, TableSource::Query { origin, .. } if origin == "hr"));
        assert_eq!(table.indexes, [vec!["AAB004".to_owned()], vec!["AAB004".to_owned(), "AAC002".to_owned()]]);
        for option in options::SECTIONS.iter().flat_map(|s| s.options) {
            let line = format!("{} = {}", option.name, option.example);
            assert!(text.lines().any(|l| l.trim_start_matches("# ") == line), "{line}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_limits() {
        let text = |word| options::find("limits", word).expect("defined").default.text();
        assert_eq!(text("statement_timeout"), "\"30s\"");
        assert_eq!(text("statement_memory"), "\"512MiB\"");
        assert_eq!(text("http_body"), "\"64MiB\"");
        assert_eq!(text("statement_rows"), "100000000");
    }
}
