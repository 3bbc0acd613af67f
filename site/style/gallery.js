// The box above the gallery: cards that do not contain all its words are hidden.
if (globalThis.document$) document$.subscribe(start);
else start();

function start() {
  const box = document.getElementById("filter");
  box?.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/);
    for (const cards of document.querySelectorAll(".cards")) {
      let left = 0;
      for (const card of cards.children) {
        card.hidden = !words.every((word) => card.textContent.toLowerCase().includes(word));
        left += !card.hidden;
      }
      cards.hidden = !left;
      cards.previousElementSibling.hidden = !left;
    }
  });
}
