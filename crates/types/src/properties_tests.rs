//! Properties text, by hand. That every text reads as `java.util.Properties` reads it, the binary's tests see.

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
