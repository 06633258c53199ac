// Shows the page anew once it has changed, and walks from request to request by the arrow keys.
const source = new EventSource("/events?path=" + encodeURIComponent(location.pathname));
let shown = null;
source.onmessage = (event) => {
  if (shown !== null && event.data !== shown) location.reload();
  shown = event.data;
};
addEventListener("keydown", (event) => {
  const link = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const target = link && document.querySelector(`a[rel=${link}]`);
  if (target && !event.ctrlKey && !event.altKey && !event.metaKey && !event.target.closest("input, .wide")) target.click();
});
