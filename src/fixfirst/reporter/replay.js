"use strict";
// Everything shown comes from the JSON block and is set as text. The state of the page is (episode, step); `show` draws it.
const doc = JSON.parse(document.getElementById("data").textContent);
const map = doc.map;
const $ = (id) => document.getElementById(id);
const SPEEDS = [1, 2, 4, 8, 16]; // steps per second
const LETTER = {none: "", clean: "", unknown: "?", user: "U", root: "R"};

let episode = doc.episodes[0];
let step = 0;
let timer = null;

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const number = (tenths) => (tenths / 10).toFixed(1).replace("-", "\u2212").replace("\u22120.0", "0.0");

// ---------------------------------------------------------------- what stays

const order = doc.workflow, remembers = doc.memory !== "none";
document.title = `fixfirst replay: ${doc.policy}`;
$("about").textContent = [
  doc.policy,
  order ? `order ${order.join(" > ")}` : "no order to keep to",
  `against ${doc.red_agent} on ${doc.backend}, variant ${doc.variant}`,
  remembers ? `memory ${doc.memory}` : "",
  doc.opening.length ? `opening ${doc.opening.join(", ")}` : "",
  `mean return of ${doc.played.episodes} episodes ${number(10 * doc.played.mean_return)}`,
].filter(Boolean).join(" \u00b7 ");
if (!order) document.querySelector("h1").textContent = "The defender at work";

const episodeButtons = doc.episodes.map((each, index) => {
  const button = make("button", "", `${each.label} ${number(each.return10)}`);
  button.type = "button";
  button.title = `Episode ${each.number} against ${each.red_agent} (key ${index + 1})`;
  button.addEventListener("click", () => choose(each, 0));
  $("episodes").append(button);
  return button;
});
for (const speed of SPEEDS) {
  const option = make("option", "", `${speed} steps/s`);
  option.value = speed;
  $("speed").append(option);
}
$("speed").value = 2;

const placed = (x, y) => `left: ${(100 * x) / map.width}%; top: ${(100 * y) / map.height}%`;
const svg = drawn("svg", {viewBox: `0 0 ${map.width} ${map.height}`, "aria-hidden": "true"});
$("map").style.aspectRatio = `${map.width} / ${map.height}`;
$("map").append(svg);
const fields = {};
for (const [name, top] of Object.entries(map.subnets)) {
  fields[name] = drawn("rect", {class: "field", x: 3, y: top + 3, width: map.width - 6, height: map.row_height - 6, rx: 6});
  svg.append(fields[name]);
  const label = make("div", "subnet", name);
  label.style = placed(9, top + 8);
  $("map").append(label);
}
for (const [here, there] of map.links) {
  const [[x1, y1], [x2, y2]] = [map.places[here], map.places[there]];
  svg.append(drawn("line", {class: "link", x1, y1, x2, y2}));
}
const attack = drawn("line", {class: "attack"});
svg.append(attack);

const hosts = doc.hosts.map((host) => {
  const node = make("div", "host"), box = make("div", "box"), name = make("div", "name");
  const believed = make("span", "half"), truth = make("span", "half");
  const above = make("div", "above"), note = make("span", "note");
  node.style = placed(...map.places[host.name]);
  node.setAttribute("role", "img");
  box.append(believed, truth);
  name.append(make("span", "label", host.name), note);
  node.append(above, box, name);
  $("map").append(node);
  const row = make("tr");
  const cells = Array.from({length: remembers ? 8 : 7}, () => make("td"));
  cells[0].textContent = host.name;
  cells[1].textContent = host.unit;
  if (remembers) cells[7].className = "remembers";
  row.append(...cells);
  $("rows").append(row);
  return {name: host.name, node, believed, truth, above, note, cells};
});
const units = (order || []).map((unit, rank) => {
  const item = make("li"), held = make("span", "small");
  item.append(make("b", "", `${rank + 1} ${unit}`), held);
  $("order").append(item);
  return {unit, item, held};
});
const unitOf = Object.fromEntries(doc.hosts.map((host) => [host.name, host.unit]));
if (!order) $("order").previousElementSibling.remove();
if (!remembers) document.querySelectorAll(".remembers").forEach((element) => element.remove());

// ---------------------------------------------------------------- the timeline of an episode

const now = drawn("rect", {class: "now", y: 0, width: 1, height: 56});

function drawTimeline() {
  const {steps} = episode, line = $("timeline");
  line.replaceChildren(now);
  line.setAttribute("viewBox", `0 0 ${steps.length} 56`);
  const worst = Math.max(1, ...steps.map((s) => -s.reward10));
  steps.forEach((s, t) => {
    const height = 36 * Math.sqrt(-s.reward10 / worst); // small costs stay visible beside an impact
    if (height) line.append(drawn("rect", {class: "cost", x: t + 0.1, y: 56 - height, width: 0.8, height}));
    if (isViolation(s)) line.append(drawn("path", {class: "violation", d: `M${t - 0.3} 1h1.6l-0.8 9z`}));
    if (s.impact) line.append(drawn("path", {class: "impact", d: `M${t + 0.5} 10l0.6 5l-0.6 5l-0.6 -5z`}));
  });
}

const isViolation = (s) => s.verdict !== null && s.verdict.kind === "violation";
const isImpact = (s) => s.impact;

// ---------------------------------------------------------------- one step

function show() {
  const s = episode.steps[step], last = episode.steps.length - 1;
  $("step").textContent = `${step} of ${last}`;
  $("reward").textContent = number(s.reward10);
  $("return").textContent = number(s.return10);
  $("red").replaceChildren(...action(s.red, s.red_worked));
  $("blue").replaceChildren(...action(s.blue, s.blue_worked));
  $("verdict").replaceChildren(...verdict(s));
  $("costs").textContent = s.costs.map((c) => `${c.what} ${number(c.tenths)}`).join(", ") || "nothing";
  if (remembers) $("memory").textContent = s.remembered.network || "\u2013";
  now.setAttribute("x", step);
  $("slider").value = step;
  $("slider").setAttribute("aria-valuetext", `step ${step} of ${last}. Red: ${s.red}. Blue: ${s.blue}.`);
  $("first").disabled = $("back").disabled = step === 0;
  $("last").disabled = $("forward").disabled = step === last;
  showOrder(s);
  hosts.forEach((host, h) => showHost(s, host, h));
  for (const [name, field] of Object.entries(fields)) field.classList.toggle("at-red", name === s.red_target);
  const target = map.places[s.red_target], [x1, y1] = map.places[map.foothold];
  const [x2, y2] = target || [x1, y1];
  for (const [name, value] of Object.entries({x1, y1, x2, y2})) attack.setAttribute(name, value);
  history.replaceState(null, "", `#e=${encodeURIComponent(episode.label)}&t=${step}`);
}

function action(words, worked) {
  if (worked === null) return [words];
  return [make("span", worked ? "tag plain" : "tag failed", worked ? "worked" : "failed"), words];
}

function verdict(s) {
  if (s.verdict === null) return [make("span", "small", order ? "no repair, nothing to judge" : "no order to judge by")];
  const kind = {violation: "bad", "in order": "good", "not judged": "plain"}[s.verdict.kind];
  return [make("span", `tag ${kind}`, s.verdict.kind), s.verdict.reason];
}

function showOrder(s) {
  for (const {unit, item, held} of units) {
    const needy = s.needed.filter((name) => unitOf[name] === unit);
    held.textContent = needy.join(", ") || "\u2013";
    item.classList.toggle("needy", needy.length > 0);
    item.classList.toggle("fixed", s.verdict !== null && unitOf[s.blue_target] === unit);
  }
}

function showHost(s, host, h) {
  const access = s.access[h], belief = s.belief[h], activity = s.activity[h], decoys = s.decoys[h];
  host.believed.className = `half ${belief}-seen`;
  host.believed.textContent = LETTER[belief];
  host.truth.className = `half ${access}-true`;
  host.truth.textContent = LETTER[access];
  host.node.classList.toggle("at-red", host.name === s.red_target);
  host.node.classList.toggle("at-blue", host.name === s.blue_target);
  host.above.replaceChildren(
    ...(activity === "none" ? [] : [make("span", "seen", activity)]),
    ...(decoys.length ? [make("span", "", ` \u25c7${decoys.length}`)] : []),
  );
  host.note.textContent = host.name === map.ot_server ? `OT ${s.ot}` : host.name === map.foothold ? "foothold" : "";
  const cost = s.costs.filter((c) => c.what === host.name || (c.what === "impact" && host.name === map.ot_server));
  const words = [access, belief, activity === "none" ? "" : activity, decoys.join(" "), cost.map((c) => number(c.tenths)).join(" ")];
  if (remembers) words.push(s.remembered[host.name] || "");
  words.forEach((text, i) => (host.cells[i + 2].textContent = text));
  host.cells[2].classList.toggle("strong", access !== "none");
  host.cells[3].classList.toggle("strong", belief !== "clean");
  host.node.setAttribute("aria-label", `${host.name}: truth ${access}, blue believes ${belief}`);
}

// ---------------------------------------------------------------- moving

function choose(toEpisode, toStep) {
  episode = toEpisode;
  $("slider").max = episode.steps.length - 1;
  episodeButtons.forEach((button, i) => button.setAttribute("aria-pressed", String(doc.episodes[i] === episode)));
  $("summary").textContent = summary();
  $("violation").disabled = !episode.steps.some(isViolation);
  $("impact").disabled = !episode.steps.some(isImpact);
  drawTimeline();
  go(toStep);
}

function summary() {
  const kept = episode.judged ? `${episode.judged - episode.violations} of ${episode.judged} judged repairs in order` : "no repair to judge";
  const impacts = episode.impacts ? `, ${episode.impacts} steps with impact` : "";
  return `Episode ${episode.number} against ${episode.red_agent}: return ${number(episode.return10)}${order ? `, ${kept}` : ""}${impacts}.`;
}

function go(toStep) {
  step = Math.min(Math.max(toStep, 0), episode.steps.length - 1);
  show();
}

function seek(wanted, direction) {
  const {steps} = episode;
  for (let i = 1; i <= steps.length; i += 1) { // goes round, so that the only one is found from anywhere
    const t = (step + direction * i + steps.length * 2) % steps.length;
    if (wanted(steps[t])) return go(t);
  }
}

function pause() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}

function play() {
  if (step === episode.steps.length - 1) go(0);
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    go(step + 1);
    if (step === episode.steps.length - 1) pause();
  }, 1000 / Number($("speed").value));
}

const playOrPause = () => (timer === null ? play() : pause());

function changeSpeed(by) {
  const index = SPEEDS.indexOf(Number($("speed").value)) + by;
  $("speed").value = SPEEDS[Math.min(Math.max(index, 0), SPEEDS.length - 1)];
  if (timer !== null) { pause(); play(); }
}

function goToAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const found = doc.episodes.find((each) => each.label === wanted.get("e")) || doc.episodes[0];
  choose(found, Number.parseInt(wanted.get("t"), 10) || 0);
}

$("first").addEventListener("click", () => go(0));
$("back").addEventListener("click", () => go(step - 1));
$("play").addEventListener("click", playOrPause);
$("forward").addEventListener("click", () => go(step + 1));
$("last").addEventListener("click", () => go(episode.steps.length - 1));
$("violation").addEventListener("click", () => seek(isViolation, 1));
$("impact").addEventListener("click", () => seek(isImpact, 1));
$("speed").addEventListener("change", () => changeSpeed(0));
$("slider").addEventListener("input", () => go(Number($("slider").value)));
$("timeline").addEventListener("click", (event) => {
  const {left, width} = $("timeline").getBoundingClientRect();
  go(Math.floor(((event.clientX - left) / width) * episode.steps.length));
});
window.addEventListener("hashchange", goToAddress);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
  if (event.key === " " && event.target.tagName === "BUTTON") return; // presses the button
  const keys = {
    " ": playOrPause,
    ArrowLeft: () => go(step - 1),
    ArrowRight: () => go(step + 1),
    Home: () => go(0),
    End: () => go(episode.steps.length - 1),
    v: () => seek(isViolation, 1),
    V: () => seek(isViolation, -1),
    i: () => seek(isImpact, 1),
    I: () => seek(isImpact, -1),
    "[": () => changeSpeed(-1),
    "]": () => changeSpeed(1),
  };
  const chosen = doc.episodes[Number(event.key) - 1];
  const act = chosen ? () => choose(chosen, 0) : keys[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});
goToAddress();
