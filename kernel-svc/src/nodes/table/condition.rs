//! Conditions on rows: `price > 10 and (city == 'Rome' or city in ['Oslo', "Bern"])`.
//!
//! A small language of its own, without access to anything but the row: columns by name (odd names in backticks), numbers,
//! texts, lists, `+ - * / %`, comparisons, `in`, `and`, `or`, `not` (also `&&`, `||`, `!`), and a few methods of cells.

mod evaluate;
mod tokens;

use atelier_proto::value::Value;

use self::{
    evaluate::evaluate,
    tokens::{Token, tokens},
};
use crate::node::NodeError;

/// Longest condition, in bytes.
const MAX_LENGTH: usize = 10_000;
/// Parts inside of each other.
const MAX_DEPTH: usize = 64;

/// A condition that was read.
#[derive(Debug, Clone)]
pub(in crate::nodes) struct Condition(Expr);

#[derive(Debug, Clone)]
enum Expr {
    Value(Value),
    Name(String),
    List(Vec<Expr>),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Method(Box<Expr>, Method, Vec<Expr>),
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    NotIn,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Contains,
    StartsWith,
    EndsWith,
    IsNull,
    NotNull,
    Lower,
    Upper,
    Strip,
    Length,
}

impl Condition {
    /// Reads a condition that an input holds.
    pub fn read(input: &str, text: &str) -> Result<Self, NodeError> {
        let bad = |why: String| {
            NodeError::new(format!("the input `{input}` is no condition: {why}")).code("input.value")
        };
        if text.len() > MAX_LENGTH {
            return Err(bad(format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let tokens = tokens(text).map_err(bad)?;
        let mut parser = Parser {
            tokens,
            at: 0,
            depth: 0,
        };
        let expr = parser.either().map_err(bad)?;
        match parser.tokens.get(parser.at) {
            None => Ok(Self(expr)),
            Some(token) => Err(bad(format!("`{}` is not expected", token.shown()))),
        }
    }
    /// The names that it uses.
    pub fn names(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut open = vec![&self.0];
        while let Some(expr) = open.pop() {
            match expr {
                Expr::Value(_) => {}
                Expr::Name(name) => found.push(name.as_str()),
                Expr::List(items) => open.extend(items),
                Expr::Not(inner) | Expr::Minus(inner) => open.push(inner),
                Expr::Binary(_, one, other) => open.extend([&**one, &**other]),
                Expr::Method(on, _, args) => {
                    open.push(on);
                    open.extend(args);
                }
            }
        }
        found
    }
    /// Whether it holds, given the value of each name.
    pub fn holds(&self, of: &dyn Fn(&str) -> Value) -> bool {
        evaluate(&self.0, of).truthy()
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}
type Parsed = Result<Expr, String>;
impl Parser {
    fn sign(&mut self, signs: &[&str]) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }
    fn word(&mut self, words: &[&str]) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(name))
            if words.contains(&name.to_lowercase().as_str()));
        self.at += usize::from(found);
        found
    }
    fn either(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it has more than {MAX_DEPTH} parts inside of each other"));
        }
        let mut left = self.both()?;
        while self.word(&["or"]) || self.sign(&["||", "|"]).is_some() {
            left = binary(Op::Or, left, self.both()?);
        }
        self.depth -= 1;
        Ok(left)
    }
    fn both(&mut self) -> Parsed {
        let mut left = self.negated()?;
        while self.word(&["and"]) || self.sign(&["&&", "&"]).is_some() {
            left = binary(Op::And, left, self.negated()?);
        }
        Ok(left)
    }
    fn negated(&mut self) -> Parsed {
        let mut turns = 0_usize;
        while self.word(&["not"]) || self.sign(&["!", "~"]).is_some() {
            turns += 1;
        }
        let inner = self.compared()?;
        Ok(match turns {
            0 => inner,
            turns if turns % 2 == 1 => Expr::Not(Box::new(inner)),
            _ => Expr::Not(Box::new(Expr::Not(Box::new(inner)))),
        })
    }
    fn compared(&mut self) -> Parsed {
        let left = self.sum()?;
        let op = match self.sign(&["===", "==", "=", "!==", "!=", "<>", "<=", ">=", "<", ">"]) {
            Some("===" | "==" | "=") => Op::Equal,
            Some("!==" | "!=" | "<>") => Op::Unequal,
            Some("<=") => Op::LessEqual,
            Some(">=") => Op::GreaterEqual,
            Some("<") => Op::Less,
            Some(_) => Op::Greater,
            None if self.word(&["in"]) => Op::In,
            None if self.word(&["is"]) => {
                if self.word(&["not"]) {
                    Op::Unequal
                } else {
                    Op::Equal
                }
            }
            None => {
                let before = self.at;
                if self.word(&["not"]) && self.word(&["in"]) {
                    Op::NotIn
                } else {
                    self.at = before;
                    return Ok(left);
                }
            }
        };
        Ok(binary(op, left, self.sum()?))
    }
    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let op = if sign == "+" { Op::Add } else { Op::Subtract };
            left = binary(op, left, self.product()?);
        }
        Ok(left)
    }
    fn product(&mut self) -> Parsed {
        let mut left = self.signed()?;
        while let Some(sign) = self.sign(&["*", "/", "%"]) {
            let op = match sign {
                "*" => Op::Multiply,
                "/" => Op::Divide,
                _ => Op::Remainder,
            };
            left = binary(op, left, self.signed()?);
        }
        Ok(left)
    }
    fn signed(&mut self) -> Parsed {
        if self.sign(&["-"]).is_some() {
            return Ok(Expr::Minus(Box::new(self.member()?)));
        }
        self.member()
    }
    fn member(&mut self) -> Parsed {
        let mut on = self.atom()?;
        while self.sign(&["."]).is_some() {
            let Some(Token::Name(name)) = self.tokens.get(self.at).cloned() else {
                return Err("a name is expected after `.`".to_owned());
            };
            self.at += 1;
            // `row.price` is the column, `name.str.contains('x')` the method.
            if name == "str" {
                continue;
            }
            if matches!(&on, Expr::Name(row) if matches!(row.as_str(), "row" | "df" | "item" | "value" | "x"))
                && method(&name).is_none()
            {
                on = Expr::Name(name);
                continue;
            }
            let method = method(&name).ok_or_else(|| format!("there is no method `{name}`"))?;
            let args = if self.sign(&["("]).is_some() {
                self.until(")")?
            } else {
                Vec::new()
            };
            on = Expr::Method(Box::new(on), method, args);
        }
        Ok(on)
    }
    fn until(&mut self, close: &str) -> Result<Vec<Expr>, String> {
        let mut items = Vec::new();
        while self.sign(&[close]).is_none() {
            items.push(self.either()?);
            if self.sign(&[","]).is_none() {
                if self.sign(&[close]).is_none() {
                    return Err(format!("`{close}` is missing"));
                }
                break;
            }
        }
        Ok(items)
    }
    fn atom(&mut self) -> Parsed {
        let Some(token) = self.tokens.get(self.at).cloned() else {
            return Err("it ends too early".to_owned());
        };
        self.at += 1;
        match token {
            Token::Text(text) => Ok(Expr::Value(text.into())),
            Token::Number(number) => Ok(Expr::Value(number)),
            Token::Quoted(name) => Ok(Expr::Name(name)),
            Token::Name(name) => Ok(match name.as_str() {
                "true" | "True" => Expr::Value(true.into()),
                "false" | "False" => Expr::Value(false.into()),
                "null" | "None" | "none" | "undefined" => Expr::Value(Value::Null),
                _ => self.column(name),
            }),
            Token::Sign("(") => {
                let mut inner = self.until(")")?;
                match (inner.pop(), inner.is_empty()) {
                    (Some(only), true) => Ok(only),
                    _ => Err("brackets hold one part".to_owned()),
                }
            }
            Token::Sign("[") => Ok(Expr::List(self.until("]")?)),
            Token::Sign(sign) => Err(format!("`{sign}` is not expected")),
        }
    }
    /// `row['odd name']` is a column too.
    fn column(&mut self, name: String) -> Expr {
        let inner = match self.tokens.get(self.at..) {
            Some([Token::Sign("["), Token::Text(inner), Token::Sign("]"), ..]) => inner.clone(),
            _ => return Expr::Name(name),
        };
        if matches!(name.as_str(), "row" | "df" | "item") {
            self.at += 3;
            return Expr::Name(inner);
        }
        Expr::Name(name)
    }
}
fn binary(op: Op, left: Expr, right: Expr) -> Expr {
    Expr::Binary(op, Box::new(left), Box::new(right))
}
fn method(name: &str) -> Option<Method> {
    Some(match name {
        "contains" | "includes" => Method::Contains,
        "startswith" | "startsWith" => Method::StartsWith,
        "endswith" | "endsWith" => Method::EndsWith,
        "isnull" | "isna" => Method::IsNull,
        "notnull" | "notna" => Method::NotNull,
        "lower" | "toLowerCase" => Method::Lower,
        "upper" | "toUpperCase" => Method::Upper,
        "strip" | "trim" => Method::Strip,
        "len" | "length" => Method::Length,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
