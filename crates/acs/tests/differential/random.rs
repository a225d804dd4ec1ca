//! Manifests, snapshots, paths, policy outputs and limits, usual ones and odd ones.

use countersign_acs::Limits;
use serde_json::{Value, json};

/// The same cases in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => Value::Bool(self.one_in(2)),
            2 => json!(self.below(2000) as i64 - 1000),
            3 => json!(self.next() as i64),
            4 => json!(f64::from_bits(self.next()))
                .as_f64()
                .filter(|value| value.is_finite())
                .map_or(json!(0.5), |value| json!(value)),
            5 => json!(self.pick(&[0.1, 1.0, 1e21, 1e-7, 1e16, -0.0, 123456.789])),
            6 => json!(self.pick(&[
                "",
                "hello",
                "é\u{1F600}",
                "a\"b\\c\n\u{1}",
                "\u{2028}",
                "search"
            ])),
            7 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members = (0..self.below(4)).map(|_| {
                    let key =
                        self.pick(&["a", "b", "text", "name", "\u{FF61}", "\u{10000}", "", "x y"]);
                    (key.to_owned(), self.value(depth - 1))
                });
                Value::Object(members.collect())
            }
        }
    }

    pub(crate) fn snapshot(&mut self) -> Value {
        if self.one_in(25) {
            return self.value(2);
        }
        let deep = (0..self.below(10)).fold(json!(1), |inner, _| json!([inner]));
        json!({
            "input": {"text": self.pick(&["hello", "some longer text to be judged"]), "list": [1, {"a": 2}], "value": self.value(3)},
            "tool_call": {"name": self.pick(&["search", "send", "unknown"]), "args": {"text": "q", "n": self.value(1)}},
            "deep": deep,
        })
    }

    pub(crate) fn path_text(&mut self) -> String {
        let mut text = self
            .pick(&[
                "$",
                "$snap",
                "$pi",
                "$policy_target",
                "$tool",
                "$.",
                "$x",
                "",
                "snap",
                "$snapx",
            ])
            .to_owned();
        for _ in 0..self.below(4) {
            text.push_str(self.pick(&[
                ".a",
                ".text",
                ".",
                "[0]",
                "[1]",
                "[01]",
                "[-1]",
                "[*]",
                "[\"a\"]",
                "[\"x y\"]",
                "[\"\\u0061\"]",
                "[\"a",
                "]",
                "[",
                ".a b",
                ".é",
                "[\"]\"]",
                "[\"\\\"\"]",
                "['a']",
                "[ 0]",
                "[18446744073709551616]",
                "[\"\\x\"]",
            ]));
        }
        text
    }

    pub(crate) fn target(&mut self) -> String {
        let usual = [
            "$.input",
            "$snap.input.text",
            "$.input.list",
            "$.input.list[1].a",
            "$.input.value",
            "$",
            "$snap",
            "$.tool_call.args",
            "$.nothing",
            "$.input.text.x",
            "$.input.list[7]",
            "$.deep",
            "$snap[\"input\"]",
        ];
        match self.one_in(20) {
            true => self.path_text(),
            false => self.pick(&usual).to_owned(),
        }
    }

    pub(crate) fn manifest(&mut self, point: &str) -> Value {
        let mut config = json!({"policy_target": self.target(), "policy": {"id": "p"}});
        if self.one_in(3) {
            config["policy_target_kind"] = json!(if self.one_in(12) { "" } else { "é kind" });
        }
        if self.one_in(40) || point.contains("tool") {
            config["tool_name_from"] = json!(self.pick(&[
                "$.tool_call.name",
                "$.tool_call.name",
                "$.tool_call.name",
                "$.tool_call.name",
                "$.tool_call.args",
                "$.nothing",
                "$tool.name",
            ]));
        }
        if self.one_in(2) {
            let from = self.pick(&[
                "$policy_target",
                "$policy_target",
                "$snap",
                "$.input.text",
                "$pi",
                "$pi.annotations",
                "$tool",
                "$tool.clearance",
                "$.input.text",
                "$policy_target.text",
                "$pi.policy_target.value",
                "$snap",
                "nothing",
            ]);
            config["annotations"] = json!({"b": {"from": from}, "a": {"from": "$snap", "more": 1}});
        }
        if self.one_in(40) {
            config["unknown"] = json!(1);
        }
        let mut manifest = json!({
            "agent_control_specification_version": if self.one_in(20) { "0.4" } else { self.pick(&["0.3.1-beta", "0.3.1-beta-agt", "0.3.0-alpha"]) },
            "policies": {"p": self.policy()},
            "intervention_points": {point: config},
            "annotators": {"a": {"type": "classifier"}, "b": {"type": "llm", "x": [1]}},
            "tools": {"search": {"clearance": "internal", "name": "other"}, "send": {}},
        });
        if self.one_in(20) {
            manifest["metadata"] = self
                .pick(&[0, 1])
                .eq(&0)
                .then(|| json!({"a": 1}))
                .unwrap_or(json!("text"));
        }
        if self.one_in(20) {
            manifest["approval"] = match self.below(5) {
                0 => json!({"timeout_seconds": 0}),
                1 => json!({"default_resolver": "x", "resolvers": {"y": {"type": "z"}}}),
                2 => json!({"default_resolver": "x"}),
                3 => {
                    json!({"on_timeout": "suspend", "fatigue_threshold": 3, "resolvers": {"y": {"type": "z", "q": 1}}})
                }
                _ => json!({"unknown": 1}),
            };
        }
        if self.one_in(40) {
            manifest["extends"] = json!(["base.yaml"]);
        }
        manifest
    }

    pub(crate) fn policy(&mut self) -> Value {
        match self.below(48) {
            0 => json!({"type": "rego"}),
            1 => json!({"type": "cedar", "policy_set": "permit(principal,action,resource);"}),
            2 => json!({"type": "cedar"}),
            3 => json!({"type": "custom", "adapter": "a", "x": 1}),
            4 => json!({"type": "custom"}),
            5 => json!({"type": "rego", "query": "data.p.v", "policy_set": "x"}),
            6 => json!({"type": "rego", "query": "data.p.v", "bundle": null}),
            _ => json!({"type": "rego", "query": "data.p.v", "bundle": "b", "other": [1]}),
        }
    }

    pub(crate) fn policy_output(&mut self) -> Value {
        let mut output = json!({"decision": self.pick(&["allow", "deny", "warn", "escalate", "transform", "transform", "transform", "Allow"])});
        let transforms = output["decision"] == "transform";
        if transforms != self.one_in(12) {
            output["transform"] = self.transform();
        }
        for (name, values) in [
            (
                "reason",
                [json!("r"), json!("runtime_error:x"), json!(null), json!(7)],
            ),
            (
                "message",
                [json!("m"), json!("runtime_error:m"), json!(null), json!([])],
            ),
            (
                "result_labels",
                [json!(["a", "b"]), json!([]), json!(null), json!(["a", 1])],
            ),
            (
                "evidence",
                [
                    json!({"artefact": "x", "verification_pointers": {"k": "u"}}),
                    json!({"artefact": "y".repeat(4100)}),
                    json!(null),
                    json!("x"),
                ],
            ),
            ("effects", [json!([]), json!(null), json!([1]), json!("x")]),
        ] {
            let rare = if name == "effects" { 30 } else { 4 };
            if self.one_in(rare) {
                let which = if self.one_in(4) { self.below(4) } else { 0 };
                output[name] = values[which].clone();
            }
        }
        match self.below(40) {
            0 => self.value(2),
            1 => json!({}),
            _ => output,
        }
    }

    pub(crate) fn transform(&mut self) -> Value {
        let path = match self.one_in(8) {
            true => self.path_text(),
            false => self
                .pick(&[
                    "$policy_target",
                    "$policy_target",
                    "$policy_target.text",
                    "$policy_target.list[0]",
                    "$policy_target[\"value\"]",
                    "$policy_target.nothing",
                    "$snap.input",
                    "$tool",
                ])
                .to_owned(),
        };
        match self.below(14) {
            0 => json!({"path": path}),
            1 => json!({"value": 1}),
            2 => json!(null),
            3 => json!({"path": 7, "value": 1}),
            _ => json!({"path": path, "value": self.value(2), "more": 1}),
        }
    }

    pub(crate) fn limits(&mut self) -> Limits {
        let mut limits = Limits::default();
        match self.below(10) {
            0 => limits.max_snapshot_bytes = 100 + self.below(300),
            1 => limits.max_policy_input_depth = self.below(14),
            2 => limits.max_annotators_per_point = self.below(3),
            3 => limits.max_annotator_output_bytes = self.below(60),
            4 => limits.max_policy_output_bytes = self.below(200),
            _ => {}
        }
        limits
    }
}

pub(crate) const POINTS: [&str; 8] = [
    "agent_startup",
    "input",
    "pre_model_call",
    "post_model_call",
    "pre_tool_call",
    "post_tool_call",
    "output",
    "agent_shutdown",
];
