//! Rust source as a row of words and signs: enough to find calls, and not fooled by comments and texts.

/// A word or a sign of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Sign(char),
    Text(String),
}

/// A file.
pub struct Source {
    tokens: Vec<(Token, usize)>,
}

/// A call of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub arguments: usize,
    pub line: usize,
    /// By the path of its trait, so that the receiver is an argument.
    pub by_path: bool,
    /// The word before the dot.
    pub on: Option<String>,
    /// Whether its first argument is called a permit.
    pub permit: bool,
}

/// A method of a trait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    pub name: String,
    /// Without the receiver.
    pub arguments: usize,
    pub asynchronous: bool,
    pub permit: bool,
}

impl Source {
    pub fn read(text: &str) -> Self {
        let letters: Vec<char> = text.chars().collect();
        let mut reader = Reader {
            letters: &letters,
            at: 0,
            line: 1,
            tokens: Vec::new(),
        };
        while reader.at < letters.len() {
            reader.step();
        }
        Self {
            tokens: reader.tokens,
        }
    }

    fn word(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some((Token::Word(word), _)) => Some(word),
            _ => None,
        }
    }

    fn sign(&self, at: usize, sign: char) -> bool {
        matches!(self.tokens.get(at), Some((Token::Sign(found), _)) if *found == sign)
    }

    /// Whether any word is such.
    pub fn names(&self, such: impl Fn(&str) -> bool) -> bool {
        (0..self.tokens.len()).any(|at| self.word(at).is_some_and(&such))
    }

    /// Whether a text holds these words.
    pub fn says(&self, words: &str) -> bool {
        self.tokens
            .iter()
            .any(|(token, _)| matches!(token, Token::Text(text) if text.contains(words)))
    }

    /// Whether a permit is made here.
    pub fn grants(&self) -> bool {
        (0..self.tokens.len()).any(|at| {
            self.word(at) == Some("SeamPermit")
                && ((self.sign(at + 1, ':') && self.sign(at + 2, ':') && self.word(at + 3) == Some("grant"))
                    || (self.sign(at + 1, '(')
                        && self.sign(at + 2, '(')
                        && self.sign(at + 3, ')')
                        && (at == 0 || self.word(at - 1) != Some("struct"))))
        })
    }

    /// All calls of methods.
    pub fn calls(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        for at in 1..self.tokens.len() {
            let Some(name) = self.word(at) else { continue };
            if !self.sign(at + 1, '(') {
                continue;
            }
            let by_path = at >= 3
                && self.sign(at - 1, ':')
                && self.sign(at - 2, ':')
                && (self.word(at - 3) == Some("Provider") || self.sign(at - 3, '>'));
            if !by_path && !self.sign(at - 1, '.') {
                continue;
            }
            calls.push(Call {
                name: name.to_owned(),
                arguments: self.arguments(at + 1).0,
                line: self.tokens[at].1,
                by_path,
                on: at
                    .checked_sub(2)
                    .and_then(|on| self.word(on))
                    .map(ToOwned::to_owned),
                permit: self.first_is_permit(at + 1),
            });
        }
        calls
    }

    fn first_is_permit(&self, open: usize) -> bool {
        (open + 1..self.tokens.len())
            .take_while(|at| !self.sign(*at, ',') && !self.sign(*at, ')'))
            .any(|at| {
                self.word(at)
                    .is_some_and(|word| word.to_lowercase().ends_with("permit"))
            })
    }

    /// How many arguments there are in the brackets that open here, and where they close.
    fn arguments(&self, open: usize) -> (usize, usize) {
        let (mut depth, mut commas, mut last_is_comma, mut any) = (0_usize, 0, false, false);
        for at in open..self.tokens.len() {
            match &self.tokens[at].0 {
                Token::Sign('(' | '[' | '{') => {
                    any |= depth > 0;
                    depth += 1;
                    last_is_comma = false;
                }
                Token::Sign(')' | ']' | '}') => {
                    depth -= 1;
                    if depth == 0 {
                        let arguments = if any {
                            commas + usize::from(!last_is_comma)
                        } else {
                            0
                        };
                        return (arguments, at);
                    }
                    last_is_comma = false;
                }
                Token::Sign(',') if depth == 1 => {
                    commas += 1;
                    last_is_comma = true;
                }
                _ => {
                    any = true;
                    last_is_comma = false;
                }
            }
        }
        (commas + 1, self.tokens.len())
    }

    /// The methods of a trait.
    pub fn methods(&self, name: &str) -> Vec<Method> {
        let start = (0..self.tokens.len())
            .find(|at| self.word(*at) == Some("trait") && self.word(at + 1) == Some(name))
            .expect("the trait is there");
        let (mut depth, mut methods) = (0_usize, Vec::new());
        for at in start..self.tokens.len() {
            if self.sign(at, '{') {
                depth += 1;
            } else if self.sign(at, '}') {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            } else if depth == 1 && self.word(at) == Some("fn") {
                let (arguments, close) = self.arguments(at + 2);
                methods.push(Method {
                    name: self.word(at + 1).unwrap().to_owned(),
                    arguments: arguments - 1,
                    asynchronous: self.word(at - 1) == Some("async"),
                    permit: (at..close).any(|at| self.word(at) == Some("SeamPermit")),
                });
            }
        }
        methods
    }
}

struct Reader<'a> {
    letters: &'a [char],
    at: usize,
    line: usize,
    tokens: Vec<(Token, usize)>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.letters.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn next(&mut self) -> char {
        let letter = self.peek(0);
        self.line += usize::from(letter == '\n');
        self.at += 1;
        letter
    }

    fn put(&mut self, token: Token, line: usize) {
        self.tokens.push((token, line));
    }

    fn step(&mut self) {
        let line = self.line;
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => {
                while self.at < self.letters.len() && self.peek(0) != '\n' {
                    self.next();
                }
            }
            ('/', '*') => self.comment(),
            ('"', _) => self.text(line),
            ('\'', _) => self.quote(),
            (letter, _) if letter.is_alphanumeric() || letter == '_' => self.name(line),
            (letter, _) => {
                self.next();
                if !letter.is_whitespace() {
                    self.put(Token::Sign(letter), line);
                }
            }
        }
    }

    fn comment(&mut self) {
        let mut depth = 0;
        while self.at < self.letters.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.next();
                    continue;
                }
            }
            self.next();
            self.next();
            if depth == 0 {
                return;
            }
        }
    }

    fn text(&mut self, line: usize) {
        self.next();
        let mut text = String::new();
        while self.at < self.letters.len() {
            match self.next() {
                '"' => break,
                '\\' => {
                    self.next();
                }
                letter => text.push(letter),
            }
        }
        self.put(Token::Text(text), line);
    }

    fn raw(&mut self, line: usize) {
        let mut fence = 0;
        while self.peek(0) == '#' {
            self.next();
            fence += 1;
        }
        self.next();
        let mut text = String::new();
        while self.at < self.letters.len() {
            if self.peek(0) == '"' && (1..=fence).all(|ahead| self.peek(ahead) == '#') {
                for _ in 0..=fence {
                    self.next();
                }
                break;
            }
            text.push(self.next());
        }
        self.put(Token::Text(text), line);
    }

    /// A letter in quotes, or a lifetime.
    fn quote(&mut self) {
        self.next();
        if self.peek(0) == '\\' {
            self.next();
            self.next();
            while self.at < self.letters.len() && self.next() != '\'' {}
        } else if self.peek(1) == '\'' {
            self.next();
            self.next();
        } else {
            while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                self.next();
            }
        }
    }

    fn name(&mut self, line: usize) {
        let mut word = String::new();
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            word.push(self.next());
        }
        let raw = matches!(word.as_str(), "r" | "br" | "cr");
        match self.peek(0) {
            '"' if raw => self.raw(line),
            '#' if raw && matches!(self.peek(1), '"' | '#') => self.raw(line),
            '"' if matches!(word.as_str(), "b" | "c") => self.text(line),
            '\'' if word == "b" => self.quote(),
            _ => self.put(Token::Word(word), line),
        }
    }
}
