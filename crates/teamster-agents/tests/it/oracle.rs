//! Compares the results of recorded runs with values that are computed directly from their lines.

use std::collections::BTreeSet;

use serde_json::Value;
use teamster_types::event::{Event, RunResult, Usage};

use crate::capture::Capture;
use crate::drive::{events, replay};
use crate::replay::for_each_capture_of;
use crate::subject::CLAUDE;

/// Returns the documents of a capture: its lines, or the elements of its only array.
fn documents(capture: &Capture) -> Vec<Value> {
    let read = capture.lines().filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    read.flat_map(|value| match value {
        Value::Array(values) => values,
        value => vec![value],
    })
    .collect()
}

fn of_type<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["type"] == kind).collect()
}

/// Returns the content blocks of lines of a type, each with its line.
fn blocks<'a>(documents: &'a [Value], kind: &str) -> Vec<(&'a Value, &'a Value)> {
    let lines = of_type(documents, kind).into_iter();
    lines
        .flat_map(|line| line["message"]["content"].as_array().into_iter().flatten().map(move |block| (line, block)))
        .collect()
}

fn result(events: &[Event]) -> &RunResult {
    match events.last() {
        Some(Event::Done(done)) => &done.result,
        other => panic!("{other:?} is not `done`"),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) }
}

#[test]
fn the_text_consists_of_the_whole_messages() {
    for_each_capture_of(std::slice::from_ref(CLAUDE), |subject, capture| {
        let documents = documents(capture);
        let blocks = blocks(&documents, "assistant");
        let of_model = blocks
            .iter()
            .filter(|(line, block)| {
                let by_cli = line["message"]["model"] == "<synthetic>";
                let failure = by_cli && line["error"].is_string();
                line["parent_tool_use_id"].is_null() && !failure && !(by_cli && block["text"] == "(no content)")
            })
            .filter_map(|(line, block)| Some((line["message"]["id"].as_str(), block["text"].as_str()?)));
        let mut whole = String::new();
        let mut last = None;
        for (id, text) in of_model {
            if !whole.is_empty() && last != Some(id) {
                whole.push_str("\n\n");
            }
            whole.push_str(text);
            last = Some(id);
        }
        let events = events(&replay(subject, capture));
        let result = result(&events);
        match of_type(&documents, "result").last() {
            // A failed run retains the deltas of an unfinished message.
            _ if result.is_error && result.text.starts_with(&whole) => Ok(()),
            Some(line) if whole.is_empty() => same(&result.text.as_str(), &line["result"].as_str().unwrap_or_default()),
            _ => same(&result.text.as_str(), &whole.as_str()),
        }
    });
}

#[test]
fn the_final_text_ends_with_the_text_of_the_result_line() {
    for_each_capture_of(std::slice::from_ref(CLAUDE), |subject, capture| {
        let documents = documents(capture);
        let events = events(&replay(subject, capture));
        let result = result(&events);
        match of_type(&documents, "result").last() {
            // `result` contains only the last text block.
            Some(line) if !result.is_error => {
                // After a slash command it may be missing or have further line ends.
                let last = line["result"].as_str().unwrap_or_default().trim_end();
                let ends = result.final_text.trim_end().ends_with(last);
                if ends { Ok(()) } else { Err(format!("{:?} does not end with {last:?}", result.final_text)) }
            }
            _ => Ok(()),
        }
    });
}

#[test]
fn usage_is_the_sum_over_the_models_of_the_last_result() {
    for_each_capture_of(std::slice::from_ref(CLAUDE), |subject, capture| {
        let documents = documents(capture);
        let Some(line) = of_type(&documents, "result").last().copied() else { return Ok(()) };
        // Up to 2.1.276, `modelUsage` counts the process. Since 2.1.277 it counts the stored session; from 2.1.318 on, another
        // field of `stream-json` counts the run. Without it, the usage of a resumed session is that of the main loop.
        let of_run = line["model_usage_since_last_result"].as_object();
        if of_run.is_none() && capture.name.starts_with("v3") {
            let result = result(&events(&replay(subject, capture))).clone();
            let tokens = result.usage.map(|usage| usage.output_tokens);
            return same(&(tokens, result.total_cost_usd), &(line["usage"]["output_tokens"].as_u64(), None));
        }
        let sum = |field: &str| {
            let models = of_run.or_else(|| line["modelUsage"].as_object()).into_iter().flatten();
            models.map(|(_, usage)| usage[field].as_u64().unwrap()).sum::<u64>()
        };
        let mut expected = Usage::default();
        expected.input_tokens = sum("inputTokens");
        expected.cache_read_tokens = Some(sum("cacheReadInputTokens"));
        expected.cache_write_tokens = Some(sum("cacheCreationInputTokens"));
        expected.output_tokens = sum("outputTokens");
        let events = events(&replay(subject, capture));
        same(&result(&events).usage, &Some(expected))?;
        let cost = of_run.map(|models| models.values().map(|usage| usage["costUSD"].as_f64().unwrap()).sum());
        same(&result(&events).total_cost_usd, &cost.or_else(|| line["total_cost_usd"].as_f64()))
    });
}

#[test]
fn each_call_and_each_result_of_the_lines_is_emitted() {
    for_each_capture_of(std::slice::from_ref(CLAUDE), |subject, capture| {
        let documents = documents(capture);
        let ids = |kind: &str, block_kind: &str, id: &str| {
            let blocks = blocks(&documents, kind).into_iter().map(|(_, block)| block);
            let of_kind = blocks.filter(|block| block["type"] == block_kind);
            of_kind.map(|block| block[id].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let mut used = ids("assistant", "tool_use", "id");
        used.extend(ids("assistant", "server_tool_use", "id"));
        let answered = ids("user", "tool_result", "tool_use_id");
        let events = events(&replay(subject, capture));
        let emitted = events.iter().filter_map(|event| match event {
            Event::ToolUse(tool) => Some(tool.tool_id.as_str().to_owned()),
            _ => None,
        });
        same(&emitted.collect::<BTreeSet<_>>(), &used.into_iter().collect())?;
        let results = events.iter().filter_map(|event| match event {
            Event::ToolResult(result) => Some(result),
            _ => None,
        });
        // First the results of the lines in order, then the results of calls that the end of the run closed.
        let results: Vec<_> = results.map(|result| result.tool_id.as_str().to_owned()).collect();
        same(&results.get(..answered.len()).unwrap_or(&results).to_vec(), &answered)
    });
}
