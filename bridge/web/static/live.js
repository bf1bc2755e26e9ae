// Refreshes an open admin page in place. It asks for the same page again and changes only what is different, so what was
// opened, focused, selected, typed or scrolled stays. Without this script the page is the same, until it is loaded again.
"use strict";

(() => {
  const main = document.querySelector("main[data-version]");
  const button = document.getElementById("live");
  const note = document.getElementById("live-note");
  if (!main || !button || !window.AbortSignal?.timeout) return;

  const USUAL = 5000, QUICK = 2000, SLOWEST = 60000, PATIENCE = 20000, ATOP = 80;
  const clockOffset = 1000 * Number(main.dataset.now) - Date.now();
  let version = main.dataset.version;
  let failures = 0, timer = 0, asking = false, over = false, leftOut = false;
  let paused = sessionStorage.getItem("live") === "off";

  // --- when to ask ---

  function schedule() {
    clearTimeout(timer);
    if (over || paused || document.hidden) return;
    const usual = "busy" in main.dataset ? QUICK : USUAL;
    timer = setTimeout(ask, failures ? Math.min(USUAL * 2 ** failures, SLOWEST) : usual);
  }

  async function ask() {
    if (over || paused || document.hidden || asking) return;
    asking = true;
    try {
      const answer = await fetch(location.pathname + location.search, {
        headers: { "X-Bridge-Poll": "1", "If-None-Match": `W/"${version}"` },
        cache: "no-store",
        redirect: "manual",
        signal: AbortSignal.timeout(PATIENCE),
      });
      await take(answer);
    } catch {
      failed("The bridge does not answer");
    } finally {
      asking = false;
      schedule();
    }
  }

  async function take(answer) {
    if (over || paused) return;
    if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) return end("Signed out");
    if (answer.status !== 304) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = fresh.querySelector("main[data-version]");
      if (!answer.ok || !next) return failed(fresh.querySelector("main h1")?.textContent ?? "The bridge fails");
      if (!over && !paused) show(fresh, next);
    }
    failures = 0;
    say("");
  }

  function failed(what) {
    failures += 1;
    say(`${what}. What you see may be old.`);
  }

  function end(why) {
    over = true;
    clearTimeout(timer);
    button.hidden = true;
    say(`${why}: this page does not refresh any more.`);
  }

  function say(text) {
    if (note.textContent !== text) note.textContent = text;
  }

  // --- what to change ---

  function show(fresh, next) {
    const places = anchors().map((node) => [node, topOf(node)]);
    const opened = new Map([...main.querySelectorAll("details[id]")].map((node) => [node.id, node.open]));
    leftOut = false;
    refresh(main, next, opened);
    const footer = document.querySelector("footer");
    const nextFooter = fresh.querySelector("footer");
    if (footer && nextFooter) refresh(footer, nextFooter, opened);
    version = leftOut ? "" : next.dataset.version;
    const [node, top] = places.find(([one]) => one.isConnected) ?? [];
    if (node) scrollBy({ top: topOf(node) - top, behavior: "instant" });
  }

  // What must not move on the screen, the most important first: what the operator holds, has opened, sees at the top.
  function anchors() {
    const seen = [...main.querySelectorAll(":scope > *, [id], [data-key]")].filter(isVisible);
    const held = seen.filter(isHeld).reverse();
    if (scrollY <= 0) return held;
    return [...held, ...seen.filter((node) => node.open), ...seen.filter((node) => topOf(node) < ATOP).reverse(), ...seen];
  }

  function isVisible(node) {
    const { top, bottom, height } = node.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < innerHeight;
  }

  const topOf = (node) => node.getBoundingClientRect().top;

  function refresh(old, next, opened) {
    if (old.nodeType === Node.TEXT_NODE) return refreshText(old, next.data);
    if (old.isEqualNode(next)) return;
    if (old.matches("form") && isInUse(old)) {
      leftOut = true;
      return;
    }
    refreshAttributes(old, next);
    if (old.nodeName === "PRE") refreshCode(old, next);
    else refreshChildren(old, next, opened);
  }

  function refreshText(old, text) {
    if (old.data === text) return;
    if (isHeld(old)) leftOut = true;
    else old.data = text;
  }

  function refreshCode(old, next) {
    if (isHeld(old)) leftOut = true;
    else old.replaceChildren(...[...next.childNodes].map((node) => document.importNode(node, true)));
  }

  function refreshAttributes(old, next) {
    const isOwn = (name) => name === "open" && old.nodeName === "DETAILS";
    for (const { name, value } of [...next.attributes]) {
      if (!isOwn(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) if (!isOwn(name) && !next.hasAttribute(name)) old.removeAttribute(name);
  }

  // Children that have an id or a key are the same wherever they stand; others if they look alike and come in order.
  function refreshChildren(old, next, opened) {
    const left = solid(old), wanted = solid(next), coming = new Map();
    for (const node of wanted) coming.set(nameOf(node), (coming.get(nameOf(node)) ?? 0) + 1);
    for (const node of wanted) {
      const name = nameOf(node);
      while (left.length && nameOf(left[0]) !== name && !coming.get(nameOf(left[0]))) drop(left.shift());
      coming.set(name, coming.get(name) - 1);
      const place = keyOf(node) || (left.length && nameOf(left[0]) === name) ? left.findIndex((one) => nameOf(one) === name) : -1;
      if (place < 0) insert(old, node, left[0], opened);
      else {
        const [same] = left.splice(place, 1);
        if (place > 0) move(old, same, left[0]);
        refresh(same, node, opened);
      }
    }
    left.forEach(drop);
  }

  const isBlank = (node) => node?.nodeType === Node.TEXT_NODE && !node.data.trim();
  const solid = (node) =>
    [...node.childNodes].filter((one) => one.nodeType === Node.ELEMENT_NODE || (one.nodeType === Node.TEXT_NODE && !isBlank(one)));
  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset?.key || "" : "");
  const nameOf = (node) =>
    node.nodeType === Node.ELEMENT_NODE ? `${node.nodeName} ${keyOf(node) || `.${node.getAttribute("class")}`}` : node.nodeName;

  function insert(parent, node, before, opened) {
    const copy = document.importNode(node, true);
    for (const one of [copy, ...(copy.querySelectorAll?.("details[id]") ?? [])]) {
      if (opened.has(one.id)) one.open = opened.get(one.id);
    }
    parent.insertBefore(copy, before ?? null);
    if (isBlank(node.nextSibling)) copy.after("\n");
  }

  function move(parent, node, before) {
    if (isHeld(node)) leftOut = true;
    else parent.insertBefore(node, before ?? null);
  }

  function drop(node) {
    if (node.nodeType === Node.ELEMENT_NODE && "stays" in node.dataset) return;
    if (isHeld(node)) {
      leftOut = true;
      return;
    }
    if (isBlank(node.nextSibling)) node.nextSibling.remove();
    node.remove();
  }

  // Whether the operator has the focus in it, or one end of the selected text.
  function isHeld(node) {
    const { activeElement } = document;
    if (activeElement && activeElement !== document.body && node.contains(activeElement)) return true;
    const selection = getSelection();
    if (!selection || selection.isCollapsed) return false;
    return node.contains(selection.anchorNode) || node.contains(selection.focusNode);
  }

  function isInUse(form) {
    if (form.contains(document.activeElement)) return true;
    return [...form.elements].some((one) => {
      if (!one.matches("input, select, textarea")) return false;
      if (one.nodeName !== "SELECT") return one.value !== one.defaultValue || one.checked !== one.defaultChecked;
      const chosen = [...one.options].find((option) => option.defaultSelected) ?? one.options[0];
      return chosen !== undefined && !chosen.selected;
    });
  }

  // --- ages, which grow also while nothing happens ---

  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  function tick() {
    if (document.hidden || paused) return;
    for (const node of document.querySelectorAll("main time[datetime], footer time[datetime]")) {
      const text = node.firstChild;
      if (text?.nodeType !== Node.TEXT_NODE || node.childNodes.length > 1 || isHeld(text)) continue;
      const age = Math.max(0, (Date.now() + clockOffset - Date.parse(node.dateTime)) / 1000);
      const [size, unit] = UNITS.find(([size]) => age >= size) ?? [1, "s"];
      const since = `${Math.floor(age / size)} ${unit}`;
      const isAgo = text.data.endsWith("ago") || text.data === "just now";
      text.data = !isAgo ? since : age < 1 ? "just now" : `${since} ago`;
    }
  }

  // --- the operator's part ---

  function showState() {
    button.hidden = over;
    button.textContent = paused ? "Paused" : "Live";
    button.setAttribute("aria-pressed", String(!paused));
    button.title = paused ? "Refresh this page by itself again" : "This page refreshes itself; press to pause";
  }

  button.addEventListener("click", () => {
    paused = !paused;
    sessionStorage.setItem("live", paused ? "off" : "on");
    showState();
    if (paused) clearTimeout(timer);
    else ask();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  document.getElementById("sign-out")?.addEventListener("submit", () => {
    over = true;
    clearTimeout(timer);
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    over = false;
    showState();
    ask();
  });
  showState();
  setInterval(tick, USUAL);
  schedule();
})();
