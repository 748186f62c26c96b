//! Properties text, given to the JDK's own `java.util.Properties` as well.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::properties::parse;

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
