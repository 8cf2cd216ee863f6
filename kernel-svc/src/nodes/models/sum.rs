//! Arithmetic in text.

/// Deepest nesting of parentheses, signs and powers.
const MAX_DEPTH: usize = 64;
/// Longest expression, in bytes.
const MAX_LENGTH: usize = 4_096;

/// The value of an expression: + - * / % ^ (to the right), signs, parentheses, functions and the names pi and e.
///
/// # Errors
/// What is wrong with it, for people; also when the result is no number.
pub(super) fn calculate(expression: &str) -> Result<f64, String> {
    if expression.len() > MAX_LENGTH {
        return Err(format!("the expression is longer than {MAX_LENGTH} bytes"));
    }
    let mut reader = Reader {
        rest: expression,
        depth: 0,
    };
    let value = reader.terms()?;
    if !reader.peek().is_empty() {
        let rest: String = reader.rest.trim().chars().take(20).collect();
        return Err(format!(
            "the expression goes on with {rest:?}, which does not fit"
        ));
    }
    if value.is_finite() {
        Ok(value)
    } else {
        Err("the result is no number".to_owned())
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}
impl<'a> Reader<'a> {
    fn peek(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }
    fn eat(&mut self, word: &str) -> bool {
        let found = self.peek().strip_prefix(word);
        if let Some(rest) = found {
            self.rest = rest;
        }
        found.is_some()
    }
    fn terms(&mut self) -> Result<f64, String> {
        let mut value = self.factors()?;
        loop {
            if self.eat("+") {
                value += self.factors()?;
            } else if self.eat("-") {
                value -= self.factors()?;
            } else {
                return Ok(value);
            }
        }
    }
    fn factors(&mut self) -> Result<f64, String> {
        let mut value = self.signed()?;
        loop {
            if self.eat("*") {
                value *= self.signed()?;
            } else if self.eat("/") {
                value /= self.signed()?;
            } else if self.eat("%") {
                value %= self.signed()?;
            } else {
                return Ok(value);
            }
        }
    }
    fn signed(&mut self) -> Result<f64, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("the expression is nested too deeply".to_owned());
        }
        let value = if self.eat("-") {
            -self.signed()?
        } else if self.eat("+") {
            self.signed()?
        } else {
            let base = self.atom()?;
            if self.eat("**") || self.eat("^") {
                base.powf(self.signed()?)
            } else {
                base
            }
        };
        self.depth -= 1;
        Ok(value)
    }
    fn atom(&mut self) -> Result<f64, String> {
        if self.eat("(") {
            let value = self.terms()?;
            return self.closed(value);
        }
        let rest = self.peek();
        let number = rest
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(rest.len());
        if let Some(text) = rest.get(..number).filter(|text| !text.is_empty()) {
            self.rest = rest.get(number..).unwrap_or_default();
            return text.parse().map_err(|_| format!("{text:?} is no number"));
        }
        let word = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let name = rest.get(..word).unwrap_or_default();
        if name.is_empty() {
            return Err(match rest.chars().next() {
                None => "the expression ends too early".to_owned(),
                Some(letter) => format!("{letter:?} does not fit there"),
            });
        }
        self.rest = rest.get(word..).unwrap_or_default();
        self.named(name)
    }
    fn named(&mut self, name: &str) -> Result<f64, String> {
        match name {
            "pi" => return Ok(std::f64::consts::PI),
            "e" => return Ok(std::f64::consts::E),
            _ => {}
        }
        if !self.eat("(") {
            return Err(format!("{name} is not known"));
        }
        let first = self.terms()?;
        let pair: Option<fn(f64, f64) -> f64> = match name {
            "min" => Some(f64::min),
            "max" => Some(f64::max),
            "pow" => Some(f64::powf),
            _ => None,
        };
        if let Some(pair) = pair {
            let mut value = first;
            while self.eat(",") {
                value = pair(value, self.terms()?);
            }
            return self.closed(value);
        }
        let value = match name {
            "sqrt" => first.sqrt(),
            "abs" => first.abs(),
            "round" => first.round(),
            "floor" => first.floor(),
            "ceil" => first.ceil(),
            "ln" | "log" => first.ln(),
            "log10" => first.log10(),
            "exp" => first.exp(),
            "sin" => first.sin(),
            "cos" => first.cos(),
            "tan" => first.tan(),
            _ => return Err(format!("{name} is not known")),
        };
        self.closed(value)
    }
    fn closed(&mut self, value: f64) -> Result<f64, String> {
        if self.eat(")") {
            Ok(value)
        } else {
            Err("a parenthesis is not closed".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1 + 2 * 3", 7.0)]
    #[case("-2 ^ 2", -4.0)]
    #[case("2 ** 3 ^ 2", 512.0)]
    #[case("(1 + 2) * -3", -9.0)]
    #[case("10 % 4 / 2", 1.0)]
    #[case("max(1, 2, 3) + sqrt(16) + abs(-1)", 8.0)]
    #[case(" round( pi ) ", 3.0)]
    fn sums_are_calculated(#[case] text: &str, #[case] expected: f64) {
        assert!(
            (calculate(text).expect("a number") - expected).abs() < 1e-12,
            "{text}"
        );
    }

    #[rstest]
    #[case("", "ends too early")]
    #[case("1 +", "ends too early")]
    #[case("(1", "not closed")]
    #[case("1 2", "goes on with")]
    #[case("rm(1)", "rm is not known")]
    #[case("1..2", "is no number")]
    #[case("1 / 0", "no number")]
    fn faults_are_named(#[case] text: &str, #[case] part: &str) {
        let wrong = calculate(text).expect_err("a fault");
        assert!(wrong.contains(part), "{text}: {wrong}");
    }

    #[test]
    fn nesting_and_length_have_a_bound() {
        assert!(calculate(&format!("{}1{}", "(".repeat(2_000), ")".repeat(2_000))).is_err());
        assert!(calculate(&"-".repeat(2_000)).is_err());
        assert!(calculate(&"1+".repeat(4_000)).is_err());
    }
}
