"use strict";
// Sort, search and page through the rows of each table of pairs. Without JavaScript the first rows stay as they are.
for (const place of document.querySelectorAll("[data-pairs]")) {
  const perPage = Number(place.dataset.pairs);
  const all = JSON.parse(place.querySelector("[data-rows]").textContent);
  const headings = [...place.querySelectorAll("th")];
  const find = (name) => place.querySelector(`[data-${name}]`);
  const lastColumn = headings.length - 1;
  let sortedBy = headings.findIndex((heading) => heading.ariaSort), page = 0;
  let rising = headings[sortedBy].ariaSort === "ascending";
  const isName = (column) => /^(pair|row|source|target)$/.test(headings[column].textContent);

  const compare = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
  const shown = (value, column) => {
    if (typeof value === "string" || isName(column)) return String(value);
    const size = Math.abs(value);
    if (headings[column].textContent === "score" && value < -1e6) return "< \u221210\u2076"; // all alike
    if (size !== 0 && (size >= 1e6 || size < 1e-4)) return powerOfTen(value);
    return String(Number(value.toPrecision(4)));
  };
  const powerOfTen = (value) => {
    const [mantissa, power] = value.toExponential(1).split("e");
    const raised = [...power.replace("+", "")].map((digit) => (digit === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[digit])).join("");
    const factor = { "1.0": "", "-1.0": "-" }[mantissa] ?? `${mantissa}\u22c5`;
    return `${factor}10${raised}`.replace("-", "\u2212");
  };

  function chosen() {
    const words = find("search").value.trim().toLowerCase(), verdict = find("verdict").value;
    const fits = (row) => (!verdict || row[lastColumn] === verdict)
      && row.some((value, column) => column < lastColumn && isName(column) && String(value).toLowerCase().includes(words));
    const rows = all.filter(fits);
    return rows.sort((a, b) => (rising ? 1 : -1) * compare(a[sortedBy], b[sortedBy]));
  }

  function cell(value, column) {
    const element = document.createElement("td");
    element.className = headings[column].className;
    if (column < lastColumn) {
      element.textContent = shown(value, column);
      if (typeof value === "string") element.title = value;
      return element;
    }
    const verdict = document.createElement("span"), swatch = document.createElement("span");
    verdict.className = "verdict";
    swatch.className = `swatch ${value}`;
    verdict.append(swatch, value);
    element.append(verdict);
    return element;
  }

  function draw() {
    const rows = chosen(), pages = Math.max(1, Math.ceil(rows.length / perPage));
    page = Math.min(page, pages - 1);
    const visible = rows.slice(page * perPage, (page + 1) * perPage);
    place.querySelector("tbody").replaceChildren(...visible.map((row) => {
      const line = document.createElement("tr");
      line.append(...row.map(cell));
      return line;
    }));
    headings.forEach((heading, column) => {
      if (column === sortedBy) heading.ariaSort = rising ? "ascending" : "descending";
      else heading.removeAttribute("aria-sort");
    });
    find("previous").disabled = page === 0;
    find("next").disabled = page === pages - 1;
    const first = page * perPage + 1;
    find("status").textContent = rows.length
      ? `${first.toLocaleString("en")} to ${(first + visible.length - 1).toLocaleString("en")} of ${rows.length.toLocaleString("en")}`
      : "Nothing fits.";
  }

  headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
    rising = column === sortedBy ? !rising : true;
    [sortedBy, page] = [column, 0];
    draw();
  }));
  for (const control of [find("search"), find("verdict")]) control.addEventListener("input", () => { page = 0; draw(); });
  find("previous").addEventListener("click", () => { page -= 1; draw(); });
  find("next").addEventListener("click", () => { page += 1; draw(); });
  for (const hidden of place.querySelectorAll("[hidden]")) hidden.hidden = false;
  draw();
}
