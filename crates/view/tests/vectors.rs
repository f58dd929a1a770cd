//! The golden views in `lab/vectors/views.json` are read as they say; the TypeScript tests read the same file.

#![expect(clippy::unwrap_used, reason = "tests")]

use corridor_view::View;
use serde_json::Value;

fn vectors(name: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/vectors/views.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[name].as_array().unwrap().clone()
}

/// Numbers by value: `12` and `12.0` are the same in JSON.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[test]
fn legal_views_are_read_and_written_unchanged() {
    let legal = vectors("legal");
    assert!(legal.len() > 3);
    for view in legal {
        let written = serde_json::to_value(View::parse(&view.to_string()).unwrap()).unwrap();
        for (field, value) in view.as_object().unwrap() {
            assert!(same(&written[field], value), "{field}: {value} became {}", written[field]);
        }
    }
}

#[test]
fn former_spellings_are_read_and_written_as_present_ones() {
    let former = vectors("former");
    assert!(former.len() > 2);
    for pair in former {
        let [former, present] = [&pair[0], &pair[1]];
        let view = View::parse(&former.to_string()).unwrap();
        assert_eq!(view, View::parse(&present.to_string()).unwrap());
        // Also as a server or a viewer of this version reads a whole view.
        assert_eq!(serde_json::from_value::<View>(former.clone()).unwrap(), view);
        let written = serde_json::to_value(view).unwrap();
        for (field, value) in present.as_object().unwrap() {
            assert!(same(&written[field], value), "{field}: {value} became {}", written[field]);
        }
        assert!(written.as_object().unwrap().keys().all(|field| !field.contains("colour")), "{written}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = vectors("refused");
    assert!(refused.len() > 3);
    for view in refused {
        assert!(View::parse(&view.to_string()).is_err(), "{view}");
    }
}
