// Shows what has changed, and walks from request to request by the arrow keys.
const source = new EventSource("/events?path=" + encodeURIComponent(location.pathname));
let shown = null;
source.onmessage = async (event) => {
  // Between the page and its first event a run may have gone on, or a computation may have ended.
  const first = shown === null && !document.querySelector(".live, #computing");
  if (!first && event.data !== shown) await renew();
  shown = event.data;
};

// The text that a model is writing is shown as it arrives.
source.addEventListener("text", (event) => {
  const stream = document.getElementById("stream");
  if (stream) stream.textContent = JSON.parse(event.data);
});

// What changes by itself is put in place; what somebody is writing stays.
async function renew() {
  const old = document.querySelector(".live") ?? document.querySelector("main");
  const written = [...old.querySelectorAll("input, textarea")].some((field) => field.value !== field.defaultValue || field.checked);
  if (written) return;
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // The form below appears once the run has ended.
  const count = (one, part) => one.querySelectorAll(part).length;
  const whole = ["main > form", ".live", ".head"].some((part) => count(page, part) !== count(document, part));
  const place = old.matches(".live") && !whole ? ".live" : "main";
  const [before, after] = [document.querySelector(place), page.querySelector(place)];
  if (!after) return;
  const name = (details) => details.querySelector("summary").textContent;
  const open = new Map([...before.querySelectorAll("details")].map((one) => [name(one), one.open]));
  const focus = before.contains(document.activeElement) && document.activeElement.id;
  before.replaceWith(after);
  // A run that is just stored gets its name and its pages.
  for (const part of place === "main" ? [] : [".head"]) {
    const [old, fresh] = [document.querySelector(part), page.querySelector(part)];
    if (old && fresh && old.textContent !== fresh.textContent) old.replaceWith(fresh);
  }
  after.querySelectorAll("details").forEach((one) => (one.open = open.get(name(one)) ?? one.open));
  if (focus) document.getElementById(focus)?.focus();
  walk();
}

// The columns of a picture are one stop for Tab; the arrow keys walk between them.
let columns = [];
function walk() {
  columns = [...document.querySelectorAll("svg a")];
  columns.slice(1).forEach((column) => column.setAttribute("tabindex", "-1"));
}
walk();

addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
  const column = columns.indexOf(event.target.closest("svg a"));
  if (column >= 0) {
    event.preventDefault();
    columns[column + step]?.focus();
  } else if (!event.target.closest("input, textarea, select, .wide")) {
    document.querySelector(`a[rel=${step < 0 ? "prev" : "next"}]`)?.click();
  }
});
