//! Participants with their colors and roles; following, presenting and the own name.

import { texts } from "../../texts/texts.ts";
import type { Component, State } from "../../app/state.ts";
import type { TogetherActions } from "../../app/together.ts";
import type { Participant } from "../../session/messages.ts";
import { el, setText, textButton } from "../dom.ts";
import { avatar } from "./avatars.ts";
import { keyedList } from "./list.ts";

const ROLES = ["own", "steer", "watch"] as const;

/** Time within which a button that removes somebody is to be pressed again. */
const CONFIRM_MILLIS = 4000;

export function peopleList(actions: TogetherActions): Component {
  const name = el("input", {
    type: "text",
    "aria-label": texts.together.yourName,
    placeholder: texts.together.yourName,
    maxlength: 60,
    autocomplete: "name",
  });
  const save = el("button", { type: "submit", class: "button" }, texts.together.save);
  const form = el("form", { class: "together-form" }, name, save);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    actions.rename(name.value);
    name.blur();
  });
  const present = textButton(texts.together.presentToAll, () => undefined, "button");
  const laser = textButton(texts.together.laserPointer, actions.toggleLaser, "button");
  laser.title = texts.together.laserHint;
  const list = el("ul", { class: "people" });
  const rows = keyedList<Participant, State>(list, (person) => String(person.id), row(actions));
  const element = el(
    "section",
    { class: "group" },
    el("h2", {}, texts.together.people),
    list,
    form,
    el("div", { class: "together-actions" }, present, laser),
  );
  let isPresenting = false;
  let you = 0;
  present.addEventListener("click", () => {
    actions.present(isPresenting ? null : you);
  });
  const update = (state: State) => {
    ({ you } = state);
    const presenter = state.participants.find((person) => person.presents);
    isPresenting = presenter?.id === you;
    const mayPresent = state.role !== "watch" && (!presenter || isPresenting || state.role === "own");
    setText(
      present,
      isPresenting
        ? texts.together.endPresenting
        : presenter
          ? texts.together.takeOverPresenting
          : texts.together.presentToAll,
    );
    present.setAttribute("aria-pressed", String(isPresenting));
    present.hidden = !mayPresent || (state.participants.length < 2 && !isPresenting);
    laser.setAttribute("aria-pressed", String(state.together.isLaserOn));
    const own = state.participants.find((person) => person.id === you);
    if (document.activeElement !== name && own) name.value = own.name;
    rows(state.participants, state);
  };
  return { element, update };
}

function row(actions: TogetherActions) {
  return (first: Participant) => {
    let person = first;
    let isFollowed = false;
    const picture = avatar(first);
    const name = el("span", { class: "person-name" });
    const facts = el("span", { class: "person-facts" });
    const follow = textButton(texts.together.follow, () => {
      actions.follow(isFollowed ? null : person.id);
    });
    const hand = textButton(texts.together.handOver, () => {
      actions.present(person.id);
    });
    const role = el(
      "select",
      {},
      ...ROLES.map((value) => el("option", { value }, texts.together.roles[value])),
    );
    role.addEventListener("change", () => {
      actions.setRole(person.id, role.value);
    });
    const remove = removeButton(() => {
      actions.remove(person.id);
    });
    const element = el(
      "li",
      { class: "person" },
      picture.element,
      name,
      facts,
      follow,
      hand,
      role,
      remove.element,
    );
    const update = (next: Participant, state: State) => {
      person = next;
      const isYou = next.id === state.you;
      isFollowed = state.together.leader === next.id;
      const presenter = state.participants.find((other) => other.presents);
      picture.update(next);
      setText(name, isYou ? texts.together.you(next.name) : next.name);
      name.title = next.name;
      setText(facts, factsOf(next, state));
      element.classList.toggle("away", next.isAway);
      follow.hidden = isYou || presenter?.id === state.you;
      setText(follow, isFollowed ? texts.together.stop : texts.together.follow);
      const follows = isFollowed ? texts.together.stopFollowing : texts.together.followWhom;
      follow.setAttribute("aria-label", follows(next.name));
      hand.hidden = isYou || presenter?.id !== state.you || next.role === "watch" || next.isAway;
      hand.setAttribute("aria-label", texts.together.handOverTo(next.name));
      role.hidden = state.role !== "own";
      role.setAttribute("aria-label", texts.together.roleOf(next.name));
      if (document.activeElement !== role) role.value = next.role;
      remove.update(next.name, isYou || state.role !== "own");
    };
    return { element, update };
  };
}

/** Returns a button that removes somebody when it is pressed twice. */
function removeButton(run: () => void) {
  let name = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const element = textButton(texts.people.remove, () => {
    const isConfirmed = timer !== undefined;
    clearTimeout(timer);
    timer = isConfirmed ? undefined : setTimeout(reset, CONFIRM_MILLIS);
    show();
    if (isConfirmed) run();
  });
  element.title = texts.people.removeHint;
  const show = () => {
    setText(element, timer === undefined ? texts.people.remove : texts.people.really);
    const label = timer === undefined ? texts.people.removeWhom : texts.people.removeAgain;
    element.setAttribute("aria-label", label(name));
  };
  const reset = () => {
    timer = undefined;
    show();
  };
  const update = (whom: string, isHidden: boolean) => {
    name = whom;
    element.hidden = isHidden;
    show();
  };
  return { element, update };
}

function factsOf(person: Participant, state: State): string {
  const words = texts.personFacts;
  const leader = state.participants.find((other) => other.id === person.follows);
  const role = ROLES.find((value) => value === person.role);
  const followed = leader?.id === state.you ? words.followsYou : words.follows(leader?.name ?? "");
  const facts = [
    person.isAway ? words.away : "",
    person.presents ? words.presents : "",
    leader && !person.presents ? followed : "",
    state.role === "own" || !role ? "" : words.roles[role],
  ];
  return facts.filter((fact) => fact !== "").join(", ");
}
