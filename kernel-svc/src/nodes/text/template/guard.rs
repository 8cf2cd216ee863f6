//! A template as the engine is given it: what makes values pays for them first (`room`).
//!
//! The engine has no hook at its operators, so that the calls which pay are put into the tree of the template, under names
//! that no template can write.

use minijinja::{
    Error, ErrorKind, Value,
    machinery::{
        Span, Token, WhitespaceConfig,
        ast::{
            AutoEscape, BinOp, BinOpKind, Block, Call, CallArg, CallBlock, Compare, CompareOp, Const, Do,
            EmitExpr, Expr, Extends, Filter, FilterBlock, ForLoop, FromImport, GetAttr, GetItem, IfCond,
            IfExpr, Import, Include, List, Macro, Map, Set, SetBlock, Slice, Spanned, Stmt, Template, Test,
            UnaryOp, UnaryOpKind, Var, WithBlock,
        },
        tokenize,
    },
};

pub(super) const FLAT: &str = "~flat";
pub(super) const WHOLE: &str = "~whole";
pub(super) const HELD: &str = "~held";
pub(super) const ITEMS: &str = "~items";
pub(super) const SHARED: &str = "~shared";
pub(super) const SOLID: &str = "~solid";
pub(super) const TIMES: &str = "~times";
/// Names of the functions that pay; no variable may be called so.
pub(super) const OWN: [&str; 7] = [FLAT, WHOLE, HELD, ITEMS, SHARED, SOLID, TIMES];

/// Operators of one expression or tag, and branches of a template: the tree is followed as deep as they nest.
const MAX_OPERATORS: usize = 300;
const MAX_BRANCHES: usize = 200;

/// Filters that copy nothing, those that make lists of the same items, and those that make a text of a text. All others
/// may make an item of each letter.
const FREE: [&str; 15] = [
    "abs", "attr", "bool", "count", "d", "default", "first", "float", "int", "last", "length", "max", "min",
    "round", "sum",
];
const SHARING: [&str; 9] = [
    "batch",
    "chain",
    "items",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
    "slice",
    "zip",
];
const TEXT: [&str; 18] = [
    "capitalize",
    "e",
    "escape",
    "format",
    "indent",
    "lines",
    "lower",
    "pprint",
    "replace",
    "reverse",
    "safe",
    "split",
    "string",
    "title",
    "tojson",
    "trim",
    "truncate",
    "upper",
];

/// How the engine reads white space.
pub(super) fn whitespace() -> WhitespaceConfig {
    WhitespaceConfig {
        keep_trailing_newline: true,
        ..WhitespaceConfig::default()
    }
}

/// Refuses what would make the tree deeper than a thread's stack reaches, before there is a tree.
pub(super) fn check(source: &str) -> Result<(), Error> {
    let (mut operators, mut branches) = (0, 0);
    for token in tokenize(source, false, Default::default(), whitespace()) {
        // What is no token is told by the parser, with its place.
        let Ok((token, _)) = token else { break };
        match token {
            Token::VariableStart | Token::BlockStart => operators = 0,
            Token::Ident("elif") => branches += 1,
            Token::Ident("and" | "or" | "not" | "if" | "is" | "in")
            | Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::FloorDiv
            | Token::Pow
            | Token::Mod
            | Token::Dot
            | Token::Tilde
            | Token::Pipe
            | Token::Eq
            | Token::Ne
            | Token::Gt
            | Token::Gte
            | Token::Lt
            | Token::Lte
            | Token::BracketOpen
            | Token::ParenOpen => operators += 1,
            Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd
            | Token::Ident(_)
            | Token::Str(_)
            | Token::String(_)
            | Token::Int(_)
            | Token::Int128(_)
            | Token::Float(_)
            | Token::Comma
            | Token::Colon
            | Token::Assign
            | Token::BracketClose
            | Token::ParenClose
            | Token::BraceOpen
            | Token::BraceClose => {}
        }
        if operators > MAX_OPERATORS || branches > MAX_BRANCHES {
            let text = format!(
                "an expression has more than {MAX_OPERATORS} operators, or the template more than {MAX_BRANCHES} branches"
            );
            return Err(Error::new(ErrorKind::SyntaxError, text));
        }
    }
    Ok(())
}

fn call<'a>(name: &'a str, args: Vec<Expr<'a>>, span: Span) -> Expr<'a> {
    Expr::Call(Spanned::new(
        Call {
            expr: Expr::Var(Spanned::new(Var { id: name }, span)),
            args: args.into_iter().map(CallArg::Pos).collect(),
        },
        span,
    ))
}
/// An operand that is paid for.
fn paid<'a>(name: &'a str, of: &Expr<'a>) -> Expr<'a> {
    call(name, vec![expr(of)], of.span())
}

fn all<'a>(of: &[Stmt<'a>]) -> Vec<Stmt<'a>> {
    of.iter().map(statement).collect()
}
fn exprs<'a>(of: &[Expr<'a>]) -> Vec<Expr<'a>> {
    of.iter().map(expr).collect()
}
/// A part of a template.
pub(super) fn statement<'a>(of: &Stmt<'a>) -> Stmt<'a> {
    match of {
        Stmt::Template(node) => Stmt::Template(Spanned::new(
            Template {
                children: all(&node.children),
            },
            node.span(),
        )),
        Stmt::EmitExpr(node) => Stmt::EmitExpr(Spanned::new(
            EmitExpr {
                expr: expr(&node.expr),
            },
            node.span(),
        )),
        // As a value it goes through the formatter, which counts it.
        Stmt::EmitRaw(node) => {
            let value = Value::from_safe_string(node.raw.to_owned());
            let text = Expr::Const(Spanned::new(Const { value }, node.span()));
            Stmt::EmitExpr(Spanned::new(EmitExpr { expr: text }, node.span()))
        }
        Stmt::ForLoop(node) => Stmt::ForLoop(Spanned::new(
            ForLoop {
                target: target(&node.target),
                iter: expr(&node.iter),
                filter_expr: node.filter_expr.as_ref().map(expr),
                recursive: node.recursive,
                body: all(&node.body),
                else_body: all(&node.else_body),
            },
            node.span(),
        )),
        Stmt::IfCond(node) => Stmt::IfCond(Spanned::new(
            IfCond {
                expr: expr(&node.expr),
                true_body: all(&node.true_body),
                false_body: all(&node.false_body),
            },
            node.span(),
        )),
        Stmt::WithBlock(node) => Stmt::WithBlock(Spanned::new(
            WithBlock {
                assignments: node
                    .assignments
                    .iter()
                    .map(|(to, value)| (target(to), expr(value)))
                    .collect(),
                body: all(&node.body),
            },
            node.span(),
        )),
        Stmt::Set(node) => {
            let value = match &node.target {
                Expr::GetAttr(_) => paid(HELD, &node.expr),
                _ => expr(&node.expr),
            };
            let target = target(&node.target);
            Stmt::Set(Spanned::new(Set { target, expr: value }, node.span()))
        }
        Stmt::SetBlock(node) => Stmt::SetBlock(Spanned::new(
            SetBlock {
                target: target(&node.target),
                filter: node.filter.as_ref().map(expr),
                body: all(&node.body),
            },
            node.span(),
        )),
        Stmt::AutoEscape(node) => Stmt::AutoEscape(Spanned::new(
            AutoEscape {
                enabled: expr(&node.enabled),
                body: all(&node.body),
            },
            node.span(),
        )),
        Stmt::FilterBlock(node) => Stmt::FilterBlock(Spanned::new(
            FilterBlock {
                filter: expr(&node.filter),
                body: all(&node.body),
            },
            node.span(),
        )),
        Stmt::Block(node) => Stmt::Block(Spanned::new(
            Block {
                name: node.name,
                required: node.required,
                body: all(&node.body),
            },
            node.span(),
        )),
        Stmt::Import(node) => Stmt::Import(Spanned::new(
            Import {
                expr: expr(&node.expr),
                name: target(&node.name),
            },
            node.span(),
        )),
        Stmt::FromImport(node) => Stmt::FromImport(Spanned::new(
            FromImport {
                expr: expr(&node.expr),
                names: node
                    .names
                    .iter()
                    .map(|(name, alias)| (target(name), alias.as_ref().map(target)))
                    .collect(),
            },
            node.span(),
        )),
        Stmt::Extends(node) => Stmt::Extends(Spanned::new(
            Extends {
                name: expr(&node.name),
            },
            node.span(),
        )),
        Stmt::Include(node) => Stmt::Include(Spanned::new(
            Include {
                name: expr(&node.name),
                ignore_missing: node.ignore_missing,
            },
            node.span(),
        )),
        Stmt::Macro(node) => Stmt::Macro(declared(node)),
        Stmt::CallBlock(node) => Stmt::CallBlock(Spanned::new(
            CallBlock {
                call: called(&node.call),
                macro_decl: declared(&node.macro_decl),
            },
            node.span(),
        )),
        Stmt::Do(node) => Stmt::Do(Spanned::new(
            Do {
                call: called(&node.call),
            },
            node.span(),
        )),
    }
}
fn declared<'a>(of: &Spanned<Macro<'a>>) -> Spanned<Macro<'a>> {
    let node = Macro {
        name: of.name,
        args: of.args.iter().map(target).collect(),
        defaults: exprs(&of.defaults),
        body: all(&of.body),
    };
    Spanned::new(node, of.span())
}
fn called<'a>(of: &Spanned<Call<'a>>) -> Spanned<Call<'a>> {
    let node = Call {
        expr: expr(&of.expr),
        args: args(&of.args),
    };
    Spanned::new(node, of.span())
}
fn args<'a>(of: &[CallArg<'a>]) -> Vec<CallArg<'a>> {
    let arg = |arg: &CallArg<'a>| match arg {
        CallArg::Pos(value) => CallArg::Pos(expr(value)),
        CallArg::Kwarg(name, value) => CallArg::Kwarg(name, expr(value)),
        CallArg::PosSplat(value) => CallArg::PosSplat(expr(value)),
        CallArg::KwargSplat(value) => CallArg::KwargSplat(expr(value)),
    };
    of.iter().map(arg).collect()
}
/// What is assigned to.
fn target<'a>(of: &Expr<'a>) -> Expr<'a> {
    match of {
        Expr::List(node) => {
            let items = node.items.iter().map(target).collect();
            Expr::List(Spanned::new(List { items }, node.span()))
        }
        other => expr(other),
    }
}
fn expr<'a>(of: &Expr<'a>) -> Expr<'a> {
    let span = of.span();
    match of {
        Expr::Var(node) => Expr::Var(Spanned::new(Var { id: node.id }, span)),
        Expr::Const(node) => constant(node.value.clone(), span),
        Expr::Slice(node) => {
            let part = Slice {
                expr: paid(FLAT, &node.expr),
                start: node.start.as_ref().map(expr),
                stop: node.stop.as_ref().map(expr),
                step: node.step.as_ref().map(expr),
            };
            call(SOLID, vec![Expr::Slice(Spanned::new(part, span))], span)
        }
        Expr::UnaryOp(node) => {
            #[expect(clippy::needless_match, reason = "the kind can neither be copied nor cloned")]
            let op = match node.op {
                UnaryOpKind::Not => UnaryOpKind::Not,
                UnaryOpKind::Neg => UnaryOpKind::Neg,
            };
            let expr = expr(&node.expr);
            Expr::UnaryOp(Spanned::new(UnaryOp { op, expr }, span))
        }
        Expr::BinOp(node) => {
            let (left, right) = match node.op {
                BinOpKind::Mul => return call(TIMES, vec![expr(&node.left), expr(&node.right)], span),
                BinOpKind::Add => (paid(FLAT, &node.left), paid(FLAT, &node.right)),
                BinOpKind::Concat => (paid(WHOLE, &node.left), paid(WHOLE, &node.right)),
                BinOpKind::Eq
                | BinOpKind::Ne
                | BinOpKind::Lt
                | BinOpKind::Lte
                | BinOpKind::Gt
                | BinOpKind::Gte
                | BinOpKind::ScAnd
                | BinOpKind::ScOr
                | BinOpKind::Sub
                | BinOpKind::Div
                | BinOpKind::FloorDiv
                | BinOpKind::Rem
                | BinOpKind::Pow
                | BinOpKind::In => (expr(&node.left), expr(&node.right)),
            };
            let op = node.op;
            Expr::BinOp(Spanned::new(BinOp { op, left, right }, span))
        }
        Expr::Compare(node) => {
            let op = |op: &CompareOp<'a>| CompareOp {
                op: op.op,
                expr: expr(&op.expr),
            };
            let compare = Compare {
                expr: expr(&node.expr),
                ops: node.ops.iter().map(op).collect(),
            };
            Expr::Compare(Spanned::new(compare, span))
        }
        Expr::IfExpr(node) => {
            let chosen = IfExpr {
                test_expr: expr(&node.test_expr),
                true_expr: expr(&node.true_expr),
                false_expr: node.false_expr.as_ref().map(expr),
            };
            Expr::IfExpr(Spanned::new(chosen, span))
        }
        Expr::Filter(node) => filter(node, span),
        Expr::Test(node) => {
            let test = Test {
                name: node.name,
                expr: expr(&node.expr),
                args: args(&node.args),
            };
            Expr::Test(Spanned::new(test, span))
        }
        Expr::GetAttr(node) => {
            let (name, expr) = (node.name, expr(&node.expr));
            Expr::GetAttr(Spanned::new(GetAttr { expr, name }, span))
        }
        Expr::GetItem(node) => {
            let item = GetItem {
                expr: expr(&node.expr),
                subscript_expr: expr(&node.subscript_expr),
            };
            Expr::GetItem(Spanned::new(item, span))
        }
        // Not put into another call: the engine knows some calls by how they are written.
        Expr::Call(node) => Expr::Call(called(node)),
        // Constants are made once.
        Expr::List(node) => match node.as_const() {
            Some(value) => constant(value, span),
            None => {
                let items = exprs(&node.items);
                call(HELD, vec![Expr::List(Spanned::new(List { items }, span))], span)
            }
        },
        Expr::Map(node) => match node.as_const() {
            Some(value) => constant(value, span),
            None => {
                let (keys, values) = (exprs(&node.keys), exprs(&node.values));
                call(
                    HELD,
                    vec![Expr::Map(Spanned::new(Map { keys, values }, span))],
                    span,
                )
            }
        },
    }
}
fn constant<'a>(value: Value, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(Const { value }, span))
}
fn filter<'a>(node: &Filter<'a>, span: Span) -> Expr<'a> {
    let pay = match node.name {
        free if FREE.contains(&free) => None,
        sharing if SHARING.contains(&sharing) => Some(SHARED),
        text if TEXT.contains(&text) => Some(WHOLE),
        _ => Some(ITEMS),
    };
    // What a block or a tag gives to its filter was counted as it was written.
    let of = node.expr.as_ref().map(|of| match pay {
        Some(pay) => paid(pay, of),
        None => expr(of),
    });
    let filter = Filter {
        name: node.name,
        expr: of,
        args: args(&node.args),
    };
    call(SOLID, vec![Expr::Filter(Spanned::new(filter, span))], span)
}
