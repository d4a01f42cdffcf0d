"use strict";
(function () {
  const root = document.documentElement;
  const pages = Array.from(document.querySelectorAll(".page"));
  const list = document.getElementById("tables");
  root.classList.add("js");

  // Shows the table that the address names, or else the list.
  function route() {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch (error) { /* not one of ours */ }
    const named = list ? pages.find((page) => page.id === name) : pages[0];
    pages.forEach((page) => page.classList.toggle("shown", page === named));
    root.classList.toggle("one", named !== undefined);
    scrollTo(0, 0);
  }
  addEventListener("hashchange", route);
  route();

  document.addEventListener("click", function (event) {
    if (!event.target.matches(".copy")) { return; }
    const code = event.target.previousElementSibling;
    getSelection().selectAllChildren(code);
    const said = function () {
      event.target.textContent = "Copied";
      setTimeout(function () { event.target.textContent = "Copy"; }, 1500);
    };
    if (navigator.clipboard) {
      navigator.clipboard.writeText(code.textContent).then(said, function () {});
    } else if (document.execCommand("copy")) {
      said();
    }
  });

  if (!list) { return; }
  const body = list.tBodies[0];
  const heads = Array.from(list.tHead.rows[0].cells);

  heads.forEach(function (head, column) {
    head.querySelector("button").addEventListener("click", function () {
      const numbers = head.classList.contains("n") || column === heads.length - 1;
      const now = head.getAttribute("aria-sort");
      const down = now ? now === "ascending" : numbers;
      const value = (row) => row.cells[column].dataset.v;
      const compare = numbers
        ? (a, b) => Number(value(a)) - Number(value(b))
        : (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true });
      const rows = Array.from(body.rows).sort((a, b) => (down ? compare(b, a) : compare(a, b)));
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  });

  const filter = document.getElementById("filter");
  const sick = document.getElementById("sick");
  const shown = document.getElementById("shown");
  function narrow() {
    const words = filter.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = (sick.checked && !("sick" in row.dataset)) || !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = count + " of " + body.rows.length;
  }
  filter.addEventListener("input", narrow);
  sick.addEventListener("change", narrow);
  narrow();
})();
