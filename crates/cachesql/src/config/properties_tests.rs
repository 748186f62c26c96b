//! Properties text: cases by hand, and the same bytes given to the JDK's own `java.util.Properties`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

fn pairs(text: &str) -> Vec<(String, String)> {
    parse(text).into_iter().map(|p| p.expect("well formed")).map(|p| (p.key, p.value)).collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[test]
fn the_three_separators_and_comments() {
    let text = "# comment\n ! another\na=1\nb : 2\nc 3\nd\n e=  x y  \nf==g\n";
    let expected = [pair("a", "1"), pair("b", "2"), pair("c", "3"), pair("d", ""), pair("e", "x y  "), pair("f", "=g")];
    assert_eq!(pairs(text), expected);
}

#[test]
fn lines_go_on_after_an_odd_number_of_backslashes() {
    assert_eq!(
        pairs("a=1,\\\n   2,\\\r\n\t3\nb=x\\\\\nc=y\\\n\nd=z"),
        [pair("a", "1,2,3"), pair("b", "x\\"), pair("c", "y"), pair("d", "z"),]
    );
    // The next line of an entry is no comment.
    assert_eq!(pairs("a=1\\\n#2"), [pair("a", "1#2")]);
}

#[test]
fn escapes_are_read() {
    assert_eq!(pairs("k\\ e\\=y\\:=\\u6c49\\u5B57 \\ud83d\\ude00\\t\\q"), [pair("k e=y:", "汉字 😀\tq")]);
    let broken = parse("ok=1\n  bad=\\u12G4\n").pop().expect("two entries").expect_err("broken");
    assert_eq!((broken.line, broken.column), (2, 3));
    assert_eq!(broken.message, "\\u12G4 is not \\u and four hexadecimal digits");
    assert!(parse("a=\\u12").pop().expect("one").is_err());
    assert!(parse("a=\\ud83d").pop().expect("one").is_err());
}

#[test]
fn places_are_those_of_the_key() {
    let found: Vec<_> = parse("\n# c\n  a=1\\\n2\n\tb=2").into_iter().map(|p| p.expect("well formed")).collect();
    let places: Vec<_> = found.iter().map(|p| (p.key.as_str(), p.line, p.column)).collect();
    assert_eq!(places, [("a", 3, 3), ("b", 5, 2)]);
}

#[test]
fn both_encodings_are_understood() {
    assert_eq!(decode("a=汉字".as_bytes()), "a=汉字");
    assert_eq!(decode("\u{feff}a=1".as_bytes()), "a=1");
    assert_eq!(decode(b"a=\xfcber"), "a=über");
}

/// Prints each pair that java.util.Properties finds, key and value as hexadecimal UTF-16, sorted by key.
const JAVA: &str = r#"
import java.util.*;
public class Pairs {
    static String hex(String s) {
        StringBuilder b = new StringBuilder();
        for (char c : s.toCharArray()) b.append(String.format("%04x", (int) c));
        return b.toString();
    }
    public static void main(String[] a) throws Exception {
        byte[] all = System.in.readAllBytes();
        int from = 0;
        for (int i = 0; i <= all.length; i++) {
            if (i < all.length && all[i] != 0) continue;
            String text = new String(all, from, i - from, "UTF-8");
            from = i + 1;
            TreeMap<String, String> sorted = new TreeMap<>();
            try {
                Properties p = new Properties();
                p.load(new java.io.StringReader(text));
                for (String k : p.stringPropertyNames()) sorted.put(hex(k), hex(p.getProperty(k)));
            } catch (IllegalArgumentException e) {
                System.out.println("malformed");
                continue;
            }
            StringBuilder line = new StringBuilder();
            for (Map.Entry<String, String> e : sorted.entrySet()) line.append(e.getKey() + "=" + e.getValue() + ";");
            System.out.println(line);
        }
    }
}
"#;

fn java_answers(texts: &[String]) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("Pairs.java");
    std::fs::write(&source, JAVA).expect("written");
    let mut child = Command::new("java").arg(&source).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(texts.join("\0").as_bytes()).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("java ran");
    assert!(output.status.success(), "java failed");
    Some(String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect())
}

fn our_answer(text: &str) -> String {
    let hex = |s: &str| s.encode_utf16().map(|unit| format!("{unit:04x}")).collect::<String>();
    let mut sorted = std::collections::BTreeMap::new();
    for property in parse(text) {
        match property {
            Ok(p) => sorted.insert(hex(&p.key), hex(&p.value)),
            Err(_) => return "malformed".to_owned(),
        };
    }
    sorted.iter().map(|(k, v)| format!("{k}={v};")).collect()
}

/// Texts made of the characters that mean something, by a small fixed generator: the same every run.
fn generated_texts() -> Vec<String> {
    let alphabet =
        ["a", "b", "=", ":", " ", "\t", "\u{c}", "\\", "\\", "\n", "\r", "\r\n", "#", "!", "\\u0041", "汉", "\\n"];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % bound
    };
    (0..4_000).map(|_| (0..1 + next(24)).map(|_| alphabet[next(alphabet.len())]).collect()).collect()
}

#[test]
fn every_text_reads_as_the_jdk_reads_it() {
    let mut texts = generated_texts();
    let by_hand = ["", "\\", "\\\n", "\\\r\n", "\\\n\n#x=1", "a=1\\", "=x", ":", " \\\n a", "a\\u00e4=\\uD83D\\uDE00"];
    texts.extend(by_hand.map(str::to_owned));
    let Some(java) = java_answers(&texts) else {
        eprintln!("SKIPPED: no java on this machine, so properties were not compared with java.util.Properties");
        return;
    };
    assert_eq!(java.len(), texts.len());
    for (text, expected) in texts.iter().zip(java) {
        assert_eq!(our_answer(text), expected, "{text:?}");
    }
}
