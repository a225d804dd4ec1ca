use super::*;

fn admit(text: &str, numbers: Numbers) -> Result<Number, Reason> {
    let literal = Literal::scan(text).ok_or(Reason::InvalidNumber)?;
    assert_eq!(literal.text, text, "the whole text is one number");
    Number::admit(&literal, numbers)
}

fn es6(number: &Number) -> Result<String, Reason> {
    let mut out = Vec::new();
    number.write_es6(&mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn doubles_as_in_appendix_b_of_rfc_8785() {
    fn check(bits: u64, expect: &str) {
        let number = Number::from_f64(f64::from_bits(bits)).unwrap();
        assert_eq!(es6(&number).as_deref(), Ok(expect), "{bits:016x}");
    }
    check(0x0000000000000000, "0");
    check(0x8000000000000000, "0");
    check(0x0000000000000001, "5e-324");
    check(0x8000000000000001, "-5e-324");
    check(0x7fefffffffffffff, "1.7976931348623157e+308");
    check(0xffefffffffffffff, "-1.7976931348623157e+308");
    check(0x4340000000000000, "9007199254740992");
    check(0xc340000000000000, "-9007199254740992");
    check(0x4430000000000000, "295147905179352830000");
    check(0x44b52d02c7e14af5, "9.999999999999997e+22");
    check(0x44b52d02c7e14af6, "1e+23");
    check(0x44b52d02c7e14af7, "1.0000000000000001e+23");
    check(0x444b1ae4d6e2ef4e, "999999999999999700000");
    check(0x444b1ae4d6e2ef4f, "999999999999999900000");
    check(0x444b1ae4d6e2ef50, "1e+21");
    check(0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7");
    check(0x3eb0c6f7a0b5ed8d, "0.000001");
    check(0x41b3de4355555553, "333333333.3333332");
    check(0x41b3de4355555554, "333333333.33333325");
    check(0x41b3de4355555555, "333333333.3333333");
    check(0x41b3de4355555556, "333333333.3333334");
    check(0x41b3de4355555557, "333333333.33333343");
    check(0xbecbf647612f3696, "-0.0000033333333333333333");
    check(0x43143ff3c1cb0959, "1424953923781206.2");
    for bits in [0x7fffffffffffffff, 0x7ff0000000000000, 0xfff0000000000000] {
        assert_eq!(Number::from_f64(f64::from_bits(bits)), None);
    }
}

#[test]
fn numbers_that_survive_a_double() {
    fn check(text: &str, expect: &str) {
        let number = admit(text, Numbers::Double).expect(text);
        assert_eq!(es6(&number).as_deref(), Ok(expect), "{text}");
    }
    check("0", "0");
    check("-0", "0");
    check("-0.0", "0");
    check("-0e5", "0");
    check("0e999999999999", "0");
    check("0.000e-999999999999999999999999", "0");
    check("1.0", "1");
    check("1e2", "100");
    check("1E+2", "100");
    check("0.1", "0.1");
    check("0.10", "0.1");
    check("-1.5e-9", "-1.5e-9");
    check("1e21", "1e+21");
    check("1e22", "1e+22");
    check("10000000000000000000000", "1e+22");
    check("9007199254740991", "9007199254740991");
    check("9007199254740992", "9007199254740992");
    check("-9007199254740994", "-9007199254740994");
    check("1152921504606847000", "1152921504606847000");
    check("5e-324", "5e-324");
    check("1.7976931348623157e308", "1.7976931348623157e+308");
    check("123456789012345000000000000e-26", "1.23456789012345");
}

#[test]
fn numbers_that_do_not_survive_a_double() {
    fn check(text: &str, reason: Reason) {
        assert_eq!(admit(text, Numbers::Double), Err(reason), "{text}");
    }
    check("9007199254740993", Reason::InexactNumber);
    check("-9007199254740993", Reason::InexactNumber);
    check("1152921504606846976", Reason::InexactNumber);
    check("18446744073709551616", Reason::InexactNumber);
    check("0.10000000000000000001", Reason::InexactNumber);
    check(
        "0.1000000000000000055511151231257827",
        Reason::InexactNumber,
    );
    check("333333333.33333329", Reason::InexactNumber);
    check("1e-400", Reason::InexactNumber);
    check("4e-324", Reason::InexactNumber);
    check("1e-999999999999999999999999", Reason::InexactNumber);
    check("1e400", Reason::NumberOutOfRange);
    check("-1.8e308", Reason::NumberOutOfRange);
    check("1e999999999999999999999999", Reason::NumberOutOfRange);
}

#[test]
fn exact_numbers_print_as_cpython_prints_them() {
    fn check(text: &str, expect: &str) {
        assert_eq!(
            admit(text, Numbers::Exact).expect(text).to_string(),
            expect,
            "{text}"
        );
    }
    check("-0", "0");
    check("-0.0", "-0.0");
    check("0.0", "0.0");
    check("-0e9", "-0.0");
    check("1.0", "1.0");
    check("1e15", "1000000000000000.0");
    check("9999999999999998.0", "9999999999999998.0");
    check("1e16", "1e+16");
    check("1e22", "1e+22");
    check("0.0001", "0.0001");
    check("0.00001", "1e-05");
    check("1e-7", "1e-07");
    check("1.5e-100", "1.5e-100");
    check("1e-400", "0.0");
    check("-1e-400", "-0.0");
    check("9223372036854775807", "9223372036854775807");
    check("9223372036854775808", "9223372036854775808");
    check("-9223372036854775808", "-9223372036854775808");
    check("-9223372036854775809", "-9223372036854775809");
    assert_eq!(
        admit("1e400", Numbers::Exact),
        Err(Reason::NumberOutOfRange)
    );
}

/// A row of zeros may outweigh an exponent that is absurd by itself.
#[test]
fn long_literals_keep_their_value() {
    let zeros = "0".repeat(1_000_000);
    let balanced = [
        (format!("0.{zeros}1e1000000"), 0.1),
        (format!("0.{zeros}1e1000001"), 1.0),
        (format!("25{zeros}e-1000001"), 2.5),
        (format!("-1{zeros}.0e-1000000"), -1.0),
        (format!("0.1{zeros}"), 0.1),
        (format!("{}.5{zeros}", 3), 3.5),
    ];
    for (text, expect) in balanced {
        for numbers in [Numbers::Double, Numbers::Exact] {
            assert_eq!(admit(&text, numbers).unwrap().as_f64(), Some(expect));
        }
    }
    let just_above = format!("0.1{zeros}1");
    assert_eq!(
        admit(&just_above, Numbers::Double),
        Err(Reason::InexactNumber)
    );
    assert_eq!(
        admit(&just_above, Numbers::Exact).unwrap().as_f64(),
        Some(0.1)
    );
    let digits = "7".repeat(1_000_000);
    assert_eq!(admit(&digits, Numbers::Exact).unwrap().to_string(), digits);
    assert_eq!(
        admit(&digits, Numbers::Double),
        Err(Reason::NumberOutOfRange)
    );
    assert_eq!(
        admit(&format!("{digits}.5"), Numbers::Exact),
        Err(Reason::NumberOutOfRange)
    );
}

#[test]
fn integers_are_never_rounded() {
    fn check(number: Number, expect: Result<&str, Reason>) {
        assert_eq!(es6(&number), expect.map(str::to_owned), "{number}");
    }
    let exact = |text| admit(text, Numbers::Exact).unwrap();
    check(Number::from(1u64 << 53), Ok("9007199254740992"));
    check(Number::from((1u64 << 53) + 1), Err(Reason::InexactNumber));
    check(Number::from((1u64 << 53) + 2), Ok("9007199254740994"));
    check(Number::from(i64::MIN), Err(Reason::InexactNumber));
    check(Number::from(u64::MAX), Err(Reason::InexactNumber));
    check(exact("10000000000000000000000"), Ok("1e+22"));
    check(
        exact("-100000000000000000000"),
        Ok("-100000000000000000000"),
    );
    check(exact("18446744073709551616"), Err(Reason::InexactNumber));
    check(exact(&"9".repeat(400)), Err(Reason::InexactNumber));
}

#[test]
fn broken_grammar() {
    for text in [
        "", "-", "01", "-01", "00", "1.", "1.e2", ".5", "1e", "1e+", "1e-", "+1", "-.5",
    ] {
        assert!(Literal::scan(text).is_none(), "{text}");
    }
    for (text, expect) in [
        ("1,", "1"),
        ("1.5]", "1.5"),
        ("-0e0x", "-0e0"),
        ("1-2", "1"),
    ] {
        assert_eq!(
            Literal::scan(text).map(|literal| literal.text),
            Some(expect)
        );
    }
}

#[test]
fn whole_numbers() {
    fn check(text: &str, signed: Option<i64>, unsigned: Option<u64>) {
        let number = admit(text, Numbers::Exact).unwrap();
        assert_eq!(
            (number.as_i64(), number.as_u64()),
            (signed, unsigned),
            "{text}"
        );
    }
    check("7", Some(7), Some(7));
    check("7.0", Some(7), Some(7));
    check("-0.0", Some(0), Some(0));
    check("-7e0", Some(-7), None);
    check("7.5", None, None);
    check("9007199254740992.0", Some(1 << 53), Some(1 << 53));
    check("9007199254740994.0", None, None);
    check("18446744073709551615", None, Some(u64::MAX));
    check("18446744073709551616", None, None);
}
