//! `corridor session`: a program that takes part in a viewing session.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use array::{Error, ErrorKind, Result};
use client::directories::UserDirectories;
use node::take_part::{SessionAddress, SessionClient, SessionNews};
use serde_json::{Map, Value};
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::time::Instant;

use crate::cli::session::{
    CursorOptions, FollowOptions, NotesOptions, RecordOptions, SessionAction, SessionOptions, SetOptions,
};
use crate::common::{print, say};

/// Longest time to wait for an answer of the node.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which a refusal may arrive after the node has answered something else.
const REFUSAL_TIME: Duration = Duration::from_millis(300);
/// Longest time of `--seconds`: a week.
const MAX_SECONDS: f64 = 604_800.0;
/// Most views of a recording: an hour at five per second. They fit the file that `--journey` reads.
const MAX_RECORDED_VIEWS: usize = 18_000;
/// Most bytes of a recording, as `--journey` reads it.
const MAX_RECORDED_BYTES: usize = 4 << 20;

/// Runs the command.
pub(crate) async fn run(options: &SessionOptions) -> Result<()> {
    let directories = UserDirectories::of_user()?;
    let address = SessionAddress::parse(&options.url, options.fingerprint.as_deref(), &directories)?;
    let joining = SessionClient::join(&address, &options.name);
    let client = tokio::time::timeout(ANSWER_TIMEOUT, joining).await.map_err(|_| too_slow())??;
    match &options.action {
        SessionAction::Set(options) => set(client, options).await,
        SessionAction::Follow(options) => follow(client, options).await,
        SessionAction::Cursor(options) => cursor(client, options).await,
        SessionAction::Record(options) => record(client, options).await,
        SessionAction::Notes(options) => notes(client, options).await,
    }
}

async fn set(mut client: SessionClient, options: &SetOptions) -> Result<()> {
    if client.is_presentation_of_others() {
        return Err(Error::new(
            ErrorKind::Denied,
            "somebody else presents; ask them to hand over or to end it",
        ));
    }
    let mut lines = match options.view.as_str() {
        "-" => Some(lines().await?),
        text => view_of(text).map(|_| None)?,
    };
    client.present()?;
    wait_until(&mut client, SessionClient::presents).await?;
    match &mut lines {
        None => {
            client.change(view_of(&options.view)?)?;
        }
        Some(lines) => {
            while let Some(line) = next_line(lines, &mut client).await? {
                client.change(view_of(&line)?)?;
            }
        }
    }
    // The node handles notes in order: once it has ended the presentation, all views are set.
    client.end_presenting()?;
    wait_until(&mut client, |client| !client.presents()).await
}

async fn follow(mut client: SessionClient, options: &FollowOptions) -> Result<()> {
    client.follow(options.leader.as_deref())?;
    let mut printed = 0;
    while options.count.is_none_or(|count| printed < count) {
        match client.next().await? {
            SessionNews::View => {
                print(&Value::Object(client.view().clone()).to_string())?;
                printed += 1;
            }
            news => report(news)?,
        }
    }
    Ok(())
}

async fn cursor(mut client: SessionClient, options: &CursorOptions) -> Result<()> {
    if options.place == "-" {
        let mut lines = lines().await?;
        while let Some(line) = next_line(&mut lines, &mut client).await? {
            client.point(Some(place(&line)?), options.laser)?;
        }
    } else {
        client.point(Some(place(&options.place)?), options.laser)?;
    }
    listen_for(&mut client, seconds(options.seconds)?, |_| Ok(())).await
}

async fn record(mut client: SessionClient, options: &RecordOptions) -> Result<()> {
    if options.rate.is_nan() || options.rate <= 0.0 {
        return Err(Error::invalid(format!("expected a --rate above 0, found {}", options.rate)));
    }
    let interval = Duration::from_secs_f64((1.0 / options.rate).min(MAX_SECONDS));
    client.follow(options.leader.as_deref())?;
    let mut views: Vec<Map<String, Value>> = Vec::new();
    let mut bytes = 0;
    let mut last: Option<Instant> = None;
    let mut newest = None;
    let recording = listen_for(&mut client, seconds(options.seconds)?, |view| {
        if view.get("camera").is_none_or(Value::is_null) {
            return Ok(());
        }
        newest = Some(view.clone());
        let now = Instant::now();
        if last.is_none_or(|last| now.duration_since(last) >= interval) && views.last() != Some(view) {
            bytes += Value::Object(view.clone()).to_string().len() + 1;
            if views.len() >= MAX_RECORDED_VIEWS || bytes >= MAX_RECORDED_BYTES {
                return Err(Error::too_large("the recording is full; lower --rate or --seconds"));
            }
            last = Some(now);
            views.push(view.clone());
        }
        Ok(())
    });
    let ended = recording.await;
    // The place where the movement ended.
    if let Some(newest) = newest.filter(|newest| views.last() != Some(newest)) {
        views.push(newest);
    }
    if views.is_empty() {
        ended?;
        return Err(Error::not_found("there was no view to record"));
    }
    write(&options.output, &views)?;
    say(&format!("{} views recorded", views.len()));
    ended
}

async fn notes(mut client: SessionClient, options: &NotesOptions) -> Result<()> {
    if let Some(text) = &options.add {
        client.add_note(text, options.at.as_deref().map(place).transpose()?)?;
        wait_until(&mut client, SessionClient::is_heard).await?;
    }
    let notes = client.notes()?;
    if options.json {
        let text = serde_json::to_string_pretty(&notes);
        return print(&text.map_err(|e| Error::internal(format!("notes in JSON: {e}")))?);
    }
    print(markdown(&notes).trim_end())
}

/// Formats notes as Markdown, one section each.
fn markdown(notes: &Value) -> String {
    let mut text = String::from("# Notes\n");
    for note in notes.as_array().into_iter().flatten() {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let view = &note["view"];
        let array = word(&view["array"]);
        let mut facts = vec![word(&note["author"]["name"])];
        facts.extend((!array.is_empty()).then(|| format!("array `{array}`")));
        facts.push(format!("time {}", view["time"].as_u64().unwrap_or_default()));
        facts.extend(note["place"].as_array().map(|place| {
            format!("at {}", place.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }));
        text.push_str(&format!("\n## {}\n\n{}\n", facts.join(", "), word(&note["text"])));
    }
    text
}

/// Waits until the state is as expected; warnings of the node are errors.
async fn wait_until(client: &mut SessionClient, is_done: impl Fn(&SessionClient) -> bool) -> Result<()> {
    let waiting = async {
        let mut refusal = None;
        while !is_done(client) {
            match client.next().await? {
                SessionNews::Message(text, true) => return Err(Error::new(ErrorKind::Denied, text)),
                SessionNews::Message(text, false) => say(&text),
                _ => {}
            }
        }
        // A refusal may arrive after the state that was waited for.
        let refusing = async {
            loop {
                if let SessionNews::Message(text, true) = client.next().await? {
                    refusal = Some(text);
                }
            }
        };
        tokio::time::timeout(REFUSAL_TIME, refusing).await.unwrap_or(Ok::<(), Error>(()))?;
        refusal.map_or(Ok(()), |text| Err(Error::invalid(text)))
    };
    // Not the timeout of quiet sessions: others may move all the time.
    tokio::time::timeout(ANSWER_TIMEOUT, waiting).await.unwrap_or_else(|_| Err(too_slow()))
}

/// Takes part for a time, and passes each new view on.
async fn listen_for(
    client: &mut SessionClient,
    time: Duration,
    mut on_view: impl FnMut(&Map<String, Value>) -> Result<()>,
) -> Result<()> {
    let listening = async {
        loop {
            match client.next().await? {
                SessionNews::View => on_view(client.view())?,
                news => report(news)?,
            }
        }
    };
    tokio::time::timeout(time, listening).await.unwrap_or(Ok(()))
}

/// Returns the next line of standard input that is not empty, while the session goes on.
async fn next_line(lines: &mut Lines<BufReader<File>>, client: &mut SessionClient) -> Result<Option<String>> {
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) if line.trim().is_empty() => {}
                line => return Ok(line),
            },
            news = client.next() => report(news?)?,
        }
    }
}

/// Shows messages of the node; warnings and errors end the command.
fn report(news: SessionNews) -> Result<()> {
    match news {
        SessionNews::Message(text, true) => Err(Error::invalid(text)),
        SessionNews::Message(text, false) => {
            say(&text);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Opens standard input.
async fn lines() -> Result<Lines<BufReader<File>>> {
    let failed = |e: std::io::Error| Error::from(e).context("reading standard input");
    Ok(BufReader::new(File::open("/dev/stdin").await.map_err(failed)?).lines())
}

fn view_of(text: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(text).map_err(|e| {
        Error::invalid(format!("expected fields of a view as JSON, such as `{{\"time\": 3}}`: {e}"))
    })
}

/// Parses `X,Y,Z`, also with spaces.
fn place(text: &str) -> Result<[f64; 3]> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let numbers: Option<Vec<f64>> =
        parts.map(|part| part.parse().ok().filter(|x: &f64| x.is_finite())).collect();
    numbers
        .and_then(|numbers| <[f64; 3]>::try_from(numbers).ok())
        .ok_or_else(|| Error::invalid(format!("expected a place X,Y,Z such as `10,20.5,-3`, found `{text}`")))
}

fn seconds(seconds: f64) -> Result<Duration> {
    if (0.0..=MAX_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(Error::invalid(format!("expected --seconds from 0 to {MAX_SECONDS}, found {seconds}")))
}

fn write(path: &Path, views: &[Map<String, Value>]) -> Result<()> {
    let failed = |e: std::io::Error| Error::from(e).context(format!("write `{}`", path.display()));
    let mut file = std::fs::File::create(path).map_err(failed)?;
    let text = serde_json::to_string(views).map_err(|e| Error::internal(format!("views in JSON: {e}")))?;
    file.write_all(text.as_bytes()).map_err(failed)
}

fn too_slow() -> Error {
    Error::new(ErrorKind::TimedOut, format!("the node did not answer within {} s", ANSWER_TIMEOUT.as_secs()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_three_finite_numbers() {
        assert_eq!(place("1, -2.5,3e2").unwrap(), [1.0, -2.5, 300.0]);
        for bad in ["", "1,2", "1,2,3,4", "1,2,x", "1,2,3,x", "1,2,inf", "1,2,nan"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn notes_become_markdown() {
        let note = json!({"text": "a crack", "author": {"name": "Ada"}, "place": [1.0, 2.0, 3.5],
            "view": {"array": "rho", "time": 4}});
        let text = markdown(&json!([note]));
        assert_eq!(text, "# Notes\n\n## Ada, array `rho`, time 4, at 1.0, 2.0, 3.5\n\na crack\n");
    }
}
