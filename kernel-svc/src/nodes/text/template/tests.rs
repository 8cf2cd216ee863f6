use rstest::rstest;
use serde_json::json;

use crate::nodes::testing::process;

#[rstest]
#[case(json!({"template": "Hello, {{ name }}!", "name": "Ada"}), "Hello, Ada!")]
#[case(json!({"template": "{{name}}", "name": null}), "")]
#[case(json!({"template": "a{{ nothing.at.all }}b"}), "ab")]
#[case(json!({"template": "{{ n }} {{ t }} {{ f }}", "n": 5, "t": true, "f": 0.5}), "5 true 0.5")]
#[case(json!({"template": "{{ name | upper | replace('A', 'O') }}", "name": "ada"}), "ODO")]
#[case(json!({"template": "{{ body|truncate(10) }}", "body": "one two three"}), "one...")]
#[case(json!({"template": "- {{ players | join('\n- ') }}", "players": ["a", "b"]}), "- a\n- b")]
#[case(json!({"template": "[{{ players | join('\n- ') }}]", "players": null}), "[]")]
#[case(json!({"template": "{% for p in posts %}{{ p.title }};{% endfor %}", "posts": [{"title": "x"}, {}]}), "x;;")]
#[case(json!({"template": "{% for p in posts %}x{% endfor %}"}), "")]
#[case(json!({"template": "{% if a > 1 %}yes{% else %}no{% endif %}", "a": 2}), "yes")]
#[case(json!({"template": "{{ roster }}", "roster": [{"b": 1, "a": "<x>"}]}), "[{\"b\":1,\"a\":\"<x>\"}]")]
#[case(json!({"template": "{{ pic }}", "pic": {"type": "image", "uri": "asset://a1"}}), "asset://a1")]
#[case(json!({"template": "{{ name }}", "name": "<b> & 'c'"}), "<b> & 'c'")]
#[case(json!({"template": "line\n"}), "line\n")]
#[case(json!({"template": "{{ x }}\n", "x": 1}), "1\n")]
#[case(json!({"template": "", "x": 1}), "")]
#[case(json!({"x": 1}), "")]
#[case(json!({"template": null}), "")]
#[tokio::test]
async fn templates_are_filled(#[case] inputs: serde_json::Value, #[case] expected: &str) {
    let out = process("nodetool.text.FormatText", inputs).await.expect("a text");
    assert_eq!(out, json!({"output": expected}));
}

#[tokio::test]
async fn the_other_two_take_their_own_property() {
    let out = process("nodetool.text.Template", json!({"string": "{{ a }}", "a": 1}))
        .await
        .expect("a text");
    assert_eq!(out, json!({"output": "1"}));
    let out = process("nodetool.text.Prompt", json!({"prompt": "{{ a }}", "a": 1}))
        .await
        .expect("a text");
    assert_eq!(out, json!({"output": "1"}));
}

#[rstest]
#[case("{{ a", "faulty (line 1)")]
#[case("{{ a | nofilter }}", "faulty (line 1)")]
#[case(
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "too many steps"
)]
#[case("{% for a in range(5000) %}{{ 'x' * 10000 }}{% endfor %}", "writes more than")]
#[case("{% include 'file' %}", "faulty (line 1)")]
#[tokio::test]
async fn faulty_and_endless_templates_end(#[case] template: &str, #[case] part: &str) {
    let error = process("nodetool.text.FormatText", json!({"template": template}))
        .await
        .expect_err("a fault");
    assert!(
        error.message.contains("`template`") && error.message.contains(part),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn bytes_of_media_never_get_into_a_text() {
    let picture = json!({"type": "image", "uri": "", "data": "AAEC"});
    let out = process(
        "nodetool.text.FormatText",
        json!({"template": "{{ p }}{{ p.data }}", "p": picture}),
    )
    .await;
    assert_eq!(out.expect("a text"), json!({"output": ""}));
}

/// What allocates wildly harms its own invocation only, with an error that names the input.
#[rstest]
#[case::a_text_repeated("{{ ('x' * 1000000000)|length }}")]
#[case::texts_repeated_and_put_together(
    "{{ (('x' * 90000000) ~ ('x' * 90000000) ~ ('x' * 90000000))|length }}"
)]
#[case::a_constant_that_the_compiler_would_make(
    "{% if false %}{{ 'x' * 90000000 ~ 'y' * 90000000 }}{% endif %}{{ 'x' * 90000000 * 9 }}"
)]
#[case::a_text_doubled(
    "{% set n = namespace(t='xxxxxxxx') %}{% for i in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}"
)]
#[case::a_text_added(
    "{% set n = namespace(t='xxxxxxxx') %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}"
)]
#[case::a_list_repeated("{{ ([1] * 1000000000)|length }}")]
#[case::a_list_of_more_items_than_can_be_counted("{{ ([1, 2] * 18446744073709551615)|length }}")]
#[case::a_list_doubled(
    "{% set n = namespace(t=[1]) %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}{{ n.t|length }}"
)]
#[case::a_list_in_lists(
    "{% set n = namespace(t=[1]) %}{% for i in range(60) %}{% set n.t = [n.t, n.t] %}{% endfor %}{{ n.t }}"
)]
#[case::lists_below_each_other(
    "{% set n = namespace(t=[]) %}{% for i in range(100000) %}{% set n.t = [n.t] %}{% endfor %}"
)]
#[case::slices_of_slices(
    "{% set n = namespace(t=[1] * 200) %}{% for i in range(100000) %}{% set n.t = (n.t[0:] * 1)|reverse %}{% endfor %}{{ n.t|length }}"
)]
#[case::a_namespace_in_itself("{% set n = namespace() %}{% set n.a = n %}{{ n }}")]
#[case::a_namespace_in_a_list_in_itself(
    "{% set n = namespace() %}{% set n.a = [1]|batch(3, n) %}{{ n == n.a }}"
)]
#[case::a_written_block(
    "{% set n = namespace(t='') %}{% for i in range(99999) %}{% set t %}{{ n.t }}{{ n.t }}12345678{% endset %}{% set n.t = t %}{% endfor %}"
)]
#[case::filters_of_a_filter("{{ (['x' * 1000] * 1000)|map('replace', 'x', 'y' * 1000)|length }}")]
#[case::fillings("{{ ([[1]] * 10000)|map('batch', 10000, 0)|map('list')|list|length }}")]
#[case::copies("{{ (['x' * 10000000] * 1000)|map('upper')|list|length }}")]
#[case::letters("{{ ('x' * 90000000)|list|length }}")]
#[case::blocks_in_themselves("{% block a %}{{ self.a() }}{% endblock %}")]
#[case::macros_in_themselves("{% macro a(n) %}{{ a(n ~ n) }}{% endmacro %}{{ a('xxxxxxxx') }}")]
#[tokio::test]
async fn templates_that_allocate_without_end_end(#[case] template: &str) {
    let error = process("nodetool.text.FormatText", json!({"template": template}))
        .await
        .expect_err("a fault");
    let text = error.message;
    assert!(text.starts_with("the template in `template` "), "{text}");
    assert!(text.len() < 300, "{text}");
}

/// The tree of a template is followed as deep as it nests, by whoever reads, compiles or drops it.
#[rstest]
#[case::operators("{{ 'a'", " ~ 'a'", " }}")]
#[case::filters("{{ 'a'", "|upper", " }}")]
#[case::attributes("{{ a", ".a", " }}")]
#[case::branches("{% if a %}", "{% elif a %}", "{% endif %}")]
#[tokio::test]
async fn deep_templates_are_refused_and_those_at_the_limit_are_filled(
    #[case] head: &str,
    #[case] part: &str,
    #[case] tail: &str,
) {
    let of = |count: usize| json!({"template": format!("{head}{}{tail}", part.repeat(count))});
    process("nodetool.text.FormatText", of(200))
        .await
        .expect("a text");
    let error = process("nodetool.text.FormatText", of(20_000)).await;
    let text = error.expect_err("a fault").message;
    assert!(text.contains("operators") || text.contains("longer"), "{text}");
}

/// What is paid for is what it was.
#[rstest]
#[case("{{ 2 * 3 }}{{ 1.5 * 2 }}{{ 'ab' * 2 }}{{ 2 * [1] }}", "63.0abab[1,1]")]
#[case(
    "{{ [1] + [2] }}{{ 1 + 2 }}{{ 'a' + 'b' }}{{ 1 ~ 'a' ~ [1] }}",
    "[1,2]3ab1a[1]"
)]
#[case("{{ 'abc'[1:] }}{{ [1, 2, 3][::-1] }}{{ 'abc'|reverse }}", "bc[3,2,1]cba")]
#[case("{% set n = namespace(a=1) %}{% set n.a = n.a + 1 %}{{ n.a }}", "2")]
#[case(
    "{% macro m(a, b='x') %}<{{ a ~ b }}{{ caller() if caller }}>{% endmacro %}{% call m(1) %}z{% endcall %}",
    "<1xz>"
)]
#[case(
    "{% filter upper %}ab{{ 'c' }}{% endfilter %}{% set t | upper %}x{% endset %}{{ t }}",
    "ABCX"
)]
#[case(
    "{% for a, b in {'k': [1, 2]}|items %}{{ a }}{{ b }}{{ loop.index }}{% endfor %}",
    "k[1,2]1"
)]
#[case(
    "{% for i in [[1, [2]]] recursive %}{% if i is iterable %}{{ loop(i) }}{% else %}{{ i }}{% endif %}{% endfor %}",
    "12"
)]
#[case(
    "{% with a = 'x' ~ 'y' %}{{ a }}{% endwith %}{{ 'a,b'|split(',')|join('-') }}",
    "xya-b"
)]
#[case(
    "{{ {'a': 1 + 1} }}{{ dict(a=1) }}{{ '%03d|%s'|format(7, 'x') }}",
    "{\"a\":2}{\"a\":1}007|x"
)]
#[case("{% autoescape true %}<b>{{ '<' }}{% endautoescape %}", "<b>&lt;")]
#[tokio::test]
async fn operators_and_filters_do_what_they_did(#[case] template: &str, #[case] expected: &str) {
    let out = process("nodetool.text.FormatText", json!({"template": template}))
        .await
        .expect("a text");
    assert_eq!(out, json!({"output": expected}));
}

#[tokio::test]
async fn text_between_tags_counts_as_often_as_it_is_written() {
    let text = "x".repeat(2_000);
    let template = format!("{{% set t %}}{{% for i in range(99999) %}}{text}{{% endfor %}}{{% endset %}}");
    let error = process("nodetool.text.FormatText", json!({"template": template})).await;
    assert!(
        error
            .expect_err("a fault")
            .message
            .contains("its values take more than")
    );
}
