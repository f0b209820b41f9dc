// The state of the page is (episode, step), the same for all players; `show` draws it.
const doc = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SPEEDS = [1, 2, 4, 8, 16]; // steps per second
const SEEKS = {repair: isRepair, contested: isContested, violation: isViolation, impact: isImpact}; // buttons, and keys by their first letter

let chosen = 0; // the episode's place in the document
let step = 0;
let timer = null;

const players = [doc, doc.beside].filter(Boolean).map((told) => {
  const root = $("player").content.firstElementChild.cloneNode(true);
  $("players").append(root);
  return new Player(told, doc.map, root);
});
const pair = players.length > 1;
const episodeOf = (player) => player.doc.episodes[chosen];
const stepsOf = (player) => episodeOf(player).steps;
const lastStep = () => stepsOf(players[0]).length - 1;

// ---------------------------------------------------------------- what stays

document.title = `fixfirst replay: ${players.map((player) => player.doc.policy).join(" beside ")}`;
$("players").className = pair ? "pair" : "alone";
$("about").textContent = pair ? "Both play the same episodes: chance is the same for both while they do the same." : players[0].about();
document.querySelector("h1").textContent =
  pair ? "Two defenders in the same episode" : players[0].believes ? "A defender and an attacker that learned" : doc.workflow ? "Does the defender keep to its order?" : "The defender at work";
players.forEach((player) => {
  if (pair) player.part("who").textContent = player.about();
  else player.part("who").remove();
  if (pair) $("timelines").append(make("b", "", player.doc.policy));
  $("timelines").append(player.timeline);
});
const believes = players.some((player) => player.believes); // the legend tells of thirds or of halves
document.querySelectorAll(believes ? "#legend .scripts" : "#legend .believes").forEach((element) => element.remove());
if (!players.some((player) => player.doc.changes.length)) document.querySelector(".changes").remove();

const episodeButtons = doc.episodes.map((each, index) => {
  const returns = players.map((player) => number(player.doc.episodes[index].return10)).join(" | ");
  const button = make("button", "", `${each.label} ${returns}`);
  button.type = "button";
  button.title = `Episode ${each.number} against ${each.red_agent} (key ${index + 1})`;
  button.addEventListener("click", () => choose(index));
  $("episodes").append(button);
  return button;
});
for (const speed of SPEEDS) {
  const option = make("option", "", `${speed} steps/s`);
  option.value = speed;
  $("speed").append(option);
}
$("speed").value = 2;

// ---------------------------------------------------------------- moving

function show() {
  players.forEach((player) => player.show(stepsOf(player)[step], lastStep()));
  const s = stepsOf(players[0])[step];
  $("slider").value = step;
  $("slider").setAttribute("aria-valuetext", `step ${step} of ${lastStep()}. Red: ${s.red}. Blue: ${s.blue}.`);
  $("first").disabled = $("back").disabled = step === 0;
  $("last").disabled = $("forward").disabled = step === lastStep();
  history.replaceState(null, "", `#e=${encodeURIComponent(doc.episodes[chosen].label)}&t=${step}`);
}

// The first step after which red holds more than its foothold, with any player; 0 if it never does.
function firstCompromise() {
  const found = players.map((player) => stepsOf(player).findIndex(
    (s) => s.access.some((access, h) => access !== "none" && player.doc.hosts[h].name !== doc.map.foothold)));
  return Math.min(...found.filter((t) => t >= 0), Infinity) === Infinity ? 0 : Math.min(...found.filter((t) => t >= 0));
}

function choose(index, toStep) {
  chosen = index;
  $("slider").max = lastStep();
  episodeButtons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === chosen)));
  const {number: which, red_agent: red} = doc.episodes[chosen];
  const habits = players[0].doc.habits || [];
  const told = players.map((player) => (pair ? `${player.doc.policy} ` : "") + player.summary(episodeOf(player)));
  const why = players.map((player) => (pair ? `${player.doc.policy}: ` : "") + episodeOf(player).why.replace(/-(?=\d)/g, "\u2212"));
  $("why").replaceChildren(...[...habits, ...why].map((text) => make("span", "line", text)));
  $("summary").textContent = `Episode ${which} against ${red}: ${told.join("; ")}.`;
  for (const [id, wanted] of Object.entries(SEEKS)) $(id).disabled = !players.some((player) => stepsOf(player).some(wanted));
  $("compromise").disabled = firstCompromise() === 0;
  players.forEach((player) => player.drawTimeline(episodeOf(player)));
  go(toStep === undefined ? firstCompromise() : toStep);
}

function go(toStep) {
  step = Math.min(Math.max(toStep, 0), lastStep());
  show();
}

function seek(wanted, direction) {
  const count = lastStep() + 1;
  for (let i = 1; i <= count; i += 1) { // goes round, so that the only one is found from anywhere
    const t = (step + direction * i + count * 2) % count;
    if (players.some((player) => wanted(stepsOf(player)[t]))) return go(t);
  }
}

function pause() {
  clearInterval(timer);
  timer = null;
  $("play").textContent = "Play";
}

function play() {
  if (step === lastStep()) go(0);
  $("play").textContent = "Pause";
  timer = setInterval(() => {
    go(step + 1);
    if (step === lastStep()) pause();
  }, 1000 / Number($("speed").value));
}

const playOrPause = () => (timer === null ? play() : pause());

function changeSpeed(by) {
  const index = SPEEDS.indexOf(Number($("speed").value)) + by;
  $("speed").value = SPEEDS[Math.min(Math.max(index, 0), SPEEDS.length - 1)];
  if (timer !== null) { pause(); play(); }
}

function goToAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1) || doc.start || "");
  const found = doc.episodes.findIndex((each) => each.label === wanted.get("e"));
  choose(Math.max(found, 0), wanted.has("t") ? Number.parseInt(wanted.get("t"), 10) || 0 : undefined);
}

const CLICKS = {
  first: () => go(0),
  back: () => go(step - 1),
  play: playOrPause,
  forward: () => go(step + 1),
  last: () => go(lastStep()),
  compromise: () => go(firstCompromise()),
};
for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener("click", act);
for (const [id, wanted] of Object.entries(SEEKS)) $(id).addEventListener("click", () => seek(wanted, 1));
$("speed").addEventListener("change", () => changeSpeed(0));
$("slider").addEventListener("input", () => go(Number($("slider").value)));
players.forEach(({timeline}) => timeline.addEventListener("click", (event) => {
  const {left, width} = timeline.getBoundingClientRect();
  go(Math.floor(((event.clientX - left) / width) * (lastStep() + 1)));
}));
window.addEventListener("hashchange", goToAddress);

const KEYS = {
  " ": playOrPause,
  ArrowLeft: CLICKS.back,
  ArrowRight: CLICKS.forward,
  Home: CLICKS.first,
  End: CLICKS.last,
  f: CLICKS.compromise,
  "[": () => changeSpeed(-1),
  "]": () => changeSpeed(1),
};
for (const [id, wanted] of Object.entries(SEEKS)) {
  KEYS[id[0]] = () => seek(wanted, 1);
  KEYS[id[0].toUpperCase()] = () => seek(wanted, -1);
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
  if (event.key === " " && event.target.tagName === "BUTTON") return; // presses the button
  const index = Number(event.key) - 1;
  const act = event.key !== " " && doc.episodes[index] ? () => choose(index) : KEYS[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});
goToAddress();
