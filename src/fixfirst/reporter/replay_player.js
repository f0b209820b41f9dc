"use strict";
// One player of a replay: its map, what it did in a step, its order, its hosts, its timeline. Everything is set as text.
const LETTER = {none: "", clean: "", unknown: "?", user: "U", root: "R", lost: "\u00d7"};
const TIMELINE_HEIGHT = 64;

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
const isViolation = (s) => s.verdict !== null && s.verdict.kind === "violation";
const isImpact = (s) => s.impact;
const isRepair = (s) => s.repair;
const isContested = (s) => s.contested;

class Player {
  // doc: what is told of this player; map: where things stand; root: its copy of the template
  constructor(doc, map, root) {
    Object.assign(this, {doc, map, root, remembers: doc.memory !== "none", unitOf: {}});
    for (const host of doc.hosts) this.unitOf[host.name] = host.unit;
    this.part = (name) => root.querySelector(`.${name}`);
    this.timeline = drawn("svg", {class: "timeline", "aria-hidden": "true", preserveAspectRatio: "none"});
    this.now = drawn("rect", {class: "now", y: 0, width: 1, height: TIMELINE_HEIGHT});
    if (!doc.workflow) root.querySelectorAll(".ordered, .since").forEach((element) => element.remove());
    if (!doc.shield) root.querySelectorAll(".shields").forEach((element) => element.remove());
    this.believes = doc.episodes.some((episode) => episode.steps[0].red_belief.length > 0); // a learned attacker is there
    if (!this.believes) root.querySelectorAll(".believes").forEach((element) => element.remove());
    if (!this.remembers) root.querySelectorAll(".remembers").forEach((element) => element.remove());
    this.drawMap();
    this.orderShown = null;
  }

  about() {
    const {doc} = this;
    return [
      doc.policy,
      doc.workflow ? `order ${doc.workflow.join(" > ")}` : "no order to keep to",
      ...doc.changes.map((change) => `from step ${change.step} on ${change.workflow.join(" > ")}`),
      `against ${doc.red_agent} on ${doc.backend}, variant ${doc.variant}`,
      doc.scenario ? `scenario ${doc.scenario.name}` : "",
      doc.reward || "",
      this.remembers ? `memory ${doc.memory}` : "",
      doc.opening.length ? `opening ${doc.opening.join(", ")}` : "",
      `mean return of ${doc.played.episodes} episodes ${number(10 * doc.played.mean_return)}`,
    ].filter(Boolean).join(" \u00b7 ");
  }

  summary(episode) {
    const kept = episode.judged ? `${episode.judged - episode.violations} of ${episode.judged} judged repairs in order` : "no repair to judge";
    const impacts = episode.impacts ? `, ${episode.impacts} steps with impact` : "";
    return `return ${number(episode.return10)}${this.doc.workflow ? `, ${kept}` : ""}${impacts}`;
  }

  // ---------------------------------------------------------------- what stays

  drawMap() {
    const {map, root} = this, place = this.part("map");
    const placed = (x, y) => `left: ${(100 * x) / map.width}%; top: ${(100 * y) / map.height}%`;
    const svg = drawn("svg", {viewBox: `0 0 ${map.width} ${map.height}`, "aria-hidden": "true"});
    place.style.aspectRatio = `${map.width} / ${map.height}`;
    place.style.setProperty("--small", 400 / map.width);  // a map of longer rows has smaller hosts
    place.append(svg);
    this.fields = {};
    for (const [name, [top, height]] of Object.entries(map.subnets)) {
      this.fields[name] = drawn("rect", {class: "field", x: 3, y: top + 3, width: map.width - 6, height: height - 6, rx: 6});
      svg.append(this.fields[name]);
      const label = make("div", "subnet", name);
      label.style = placed(9, top + 8);
      place.append(label);
    }
    for (const [here, there] of map.links) {
      const [[x1, y1], [x2, y2]] = [map.middles[here], map.middles[there]];
      svg.append(drawn("line", {class: "link", x1, y1, x2, y2}));
    }
    this.attack = drawn("line", {class: "attack"});
    svg.append(this.attack);
    this.hosts = this.doc.hosts.map((host) => {
      const node = make("div", "host"), box = make("div", "box"), name = make("div", "name");
      const believed = make("span", "half"), truth = make("span", "half");
      const felt = make("span", "half"), above = make("div", "above"), note = make("span", "note");
      node.style = placed(...map.middles[host.name]);
      node.setAttribute("role", "img");
      box.append(believed, truth, ...(this.believes ? [felt] : []));
      node.classList.toggle("three", this.believes);
      name.append(make("span", "label", host.name), note);
      node.append(above, box, name);
      place.append(node);
      const row = make("tr");
      const cells = Array.from({length: 7 + this.believes + this.remembers}, () => make("td"));
      cells[0].textContent = host.name;
      cells[1].textContent = host.unit;
      if (this.remembers) cells.at(-1).className = "remembers";
      row.append(...cells);
      root.querySelector(".rows").append(row);
      return {name: host.name, node, believed, truth, felt, above, note, cells};
    });
  }

  drawTimeline(episode) {
    const {steps} = episode, line = this.timeline, bottom = TIMELINE_HEIGHT - 8;
    line.replaceChildren(this.now);
    line.setAttribute("viewBox", `0 0 ${steps.length} ${TIMELINE_HEIGHT}`);
    const worst = Math.max(1, ...steps.map((s) => -s.reward10));
    steps.forEach((s, t) => {
      const height = 36 * Math.sqrt(-s.reward10 / worst); // small costs stay visible beside an impact
      if (height) line.append(drawn("rect", {class: "cost", x: t + 0.1, y: bottom - height, width: 0.8, height}));
      if (isRepair(s)) line.append(drawn("rect", {class: isContested(s) ? "contested" : "repair", x: t + 0.1, y: bottom + 2, width: 0.8, height: 5}));
      if (isViolation(s)) line.append(drawn("path", {class: "violation", d: `M${t - 0.3} 1h1.6l-0.8 9z`}));
      if (isImpact(s)) line.append(drawn("path", {class: "impact", d: `M${t + 0.5} 10l0.6 5l-0.6 5l-0.6 -5z`}));
    });
    for (const {step} of this.doc.changes) line.append(drawn("line", {class: "change", x1: step, x2: step, y1: 0, y2: TIMELINE_HEIGHT}));
  }

  // ---------------------------------------------------------------- one step

  show(s, last) {
    const {map, part} = this;
    part("step").textContent = `${s.step} of ${last}`;
    part("reward").textContent = number(s.reward10);
    part("return").textContent = number(s.return10);
    part("red").replaceChildren(...this.action(s.red, s.red_worked));
    part("blue").replaceChildren(...this.action(s.blue, s.blue_worked));
    if (this.believes) part("belief").replaceChildren(...this.belief(s));
    part("verdict").replaceChildren(...this.verdict(s));
    part("costs").textContent = s.costs.map((c) => `${c.what} ${number(c.tenths)}`).join(", ") || "nothing";
    if (this.doc.shield) part("shield").textContent = this.shield(s);
    if (this.remembers) part("memory").textContent = s.remembered.network || "\u2013";
    this.now.setAttribute("x", s.step);
    if (this.doc.workflow) this.showOrder(s);
    this.hosts.forEach((host, h) => this.showHost(s, host, h));
    for (const [name, field] of Object.entries(this.fields)) field.classList.toggle("at-red", name === s.red_target);
    const [x1, y1] = map.middles[map.foothold], [x2, y2] = map.middles[s.red_target] || [x1, y1];
    for (const [name, value] of Object.entries({x1, y1, x2, y2})) this.attack.setAttribute(name, value);
  }

  action(words, worked) {
    if (worked === null) return [words];
    return [make("span", worked ? "tag plain" : "tag failed", worked ? "worked" : "failed"), words];
  }

  // What a learned attacker believes to hold, and where that is not so.
  belief(s) {
    if (!s.red_belief.length) return [make("span", "small", "a script attacks in this episode")];
    const names = this.doc.hosts.map((host) => host.name);
    const held = names.filter((name, h) => ["user", "root"].includes(s.red_belief[h]));
    const wrong = held.filter((name) => s.access[names.indexOf(name)] === "none");
    const unaware = names.filter((name, h) => s.access[h] !== "none" && !held.includes(name) && name !== this.map.foothold);
    const more = [wrong.length ? `not true of ${wrong.join(", ")}` : "", unaware.length ? `holds ${unaware.join(", ")} unawares` : ""];
    return [`to hold ${held.join(", ") || "nothing but its foothold"}`, ...more.filter(Boolean).map((text) => make("span", "tag failed after", text))];
  }

  verdict(s) {
    if (s.verdict === null) return [make("span", "small", this.doc.workflow ? "no repair, nothing to judge" : "no order to judge by")];
    const kind = {violation: "bad", "in order": "good", "not judged": "plain"}[s.verdict.kind];
    return [make("span", `tag ${kind}`, s.verdict.kind), s.verdict.reason];
  }

  shield(s) {
    if (!s.suspected.length) return "suspected nothing, forbade nothing";
    const forbidden = s.forbidden.length ? `repairs of ${s.forbidden.join(", ")}` : "nothing";
    return `suspected ${s.suspected.join(", ")}; forbade ${forbidden}`;
  }

  showOrder(s) {
    const change = this.doc.changes.filter((each) => each.step <= s.step).at(-1);
    const order = change ? change.workflow : this.doc.workflow;
    if (this.orderShown !== order) { // also when it changes on the way
      this.orderShown = order;
      this.part("since").textContent = change ? `changed at step ${change.step}` : this.doc.changes.length ? `until step ${this.doc.changes[0].step - 1}` : "";
      this.units = order.map((unit, rank) => {
        const item = make("li"), held = make("span", "small"), note = make("span", "note");
        item.append(make("b", "", `${rank + 1} ${unit}`), held, note);
        return {unit, item, held, note};
      });
      this.part("order").replaceChildren(...this.units.map((each) => each.item));
    }
    for (const {unit, item, held, note} of this.units) {
      const needy = s.needed.filter((name) => this.unitOf[name] === unit), forbidden = s.forbidden.includes(unit);
      held.textContent = needy.join(", ") || "\u2013";
      note.textContent = forbidden ? "forbidden" : s.suspected.some((name) => this.unitOf[name] === unit) ? "suspected" : "";
      item.classList.toggle("needy", needy.length > 0);
      item.classList.toggle("forbidden", forbidden);
      item.classList.toggle("fixed", s.verdict !== null && this.unitOf[s.blue_target] === unit);
    }
  }

  showHost(s, host, h) {
    const {map} = this, access = s.access[h], belief = s.belief[h], activity = s.activity[h], decoys = s.decoys[h];
    host.believed.className = `half ${belief}-seen`;
    host.believed.textContent = LETTER[belief];
    host.truth.className = `half ${access}-true`;
    host.truth.textContent = LETTER[access];
    const felt = s.red_belief[h] || "none";
    host.felt.className = `half ${felt}-felt`;
    host.felt.textContent = LETTER[felt];
    host.node.classList.toggle("at-red", host.name === s.red_target);
    host.node.classList.toggle("at-blue", host.name === s.blue_target);
    host.above.replaceChildren(
      ...(activity === "none" ? [] : [make("span", "seen", activity)]),
      ...(decoys.length ? [make("span", "", ` \u25c7${decoys.length}`)] : []),
    );
    host.note.textContent = host.name === map.ot_server ? `OT ${s.ot}` : host.name === map.foothold ? "foothold" : "";
    const cost = s.costs.filter((c) => c.what === host.name || (c.what === "impact" && host.name === map.ot_server));
    const words = [access, belief, ...(this.believes ? [felt === "none" ? "" : felt] : []), activity === "none" ? "" : activity, decoys.join(" "), cost.map((c) => number(c.tenths)).join(" ")];
    if (this.remembers) words.push(s.remembered[host.name] || "");
    words.forEach((text, i) => (host.cells[i + 2].textContent = text));
    host.cells[2].classList.toggle("strong", access !== "none");
    host.cells[3].classList.toggle("strong", belief !== "clean");
    host.node.setAttribute("aria-label", `${host.name}: truth ${access}, blue believes ${belief}${this.believes ? `, red believes ${felt}` : ""}`);
  }
}
