"use strict";
// Draw many scans, a colour each, that can be turned; a switch shows or hides each.
for (const place of document.querySelectorAll("[data-scans]")) {
  const scans = JSON.parse(place.querySelector("[data-view]").textContent);
  const canvas = place.querySelector("canvas"), pen = canvas.getContext("2d");
  const switches = [...place.querySelectorAll("[data-scan]")];
  const START = { yaw: 0, pitch: 90, zoom: 1 }, view = { ...START };
  let width = 0, height = 0, waiting = false;

  function draw() {
    waiting = false;
    const ratio = window.devicePixelRatio || 1, radians = Math.PI / 180;
    const [sy, cy, sp, cp] = [Math.sin(view.yaw * radians), Math.cos(view.yaw * radians), Math.sin(view.pitch * radians), Math.cos(view.pitch * radians)];
    const scale = 0.47 * Math.min(width, height) * view.zoom * (width > height ? 1.2 : 1);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.globalAlpha = 0.6;
    const crowd = scans.reduce((sum, { points }) => sum + points.length / 3, 0);
    const side = (crowd > 20000 ? 1.6 : 2.4) * Math.min(2, Math.sqrt(view.zoom));
    const shown = scans.filter((_, number) => switches[number].checked);
    const longest = Math.max(0, ...shown.map(({ points }) => points.length));
    // Some points of each scan in turn, so that none hides the others.
    for (let from = 0; from < longest; from += 90) {
      for (const { points, colour } of shown) {
        pen.fillStyle = colour;
        for (let i = from; i < Math.min(from + 90, points.length); i += 3) {
          const right = cy * points[i] - sy * points[i + 1], back = sy * points[i] + cy * points[i + 1];
          const up = cp * points[i + 2] + sp * back;
          pen.fillRect(width / 2 + right * scale, height / 2 - up * scale, side, side);
        }
      }
    }
    canvas.dataset.shown = JSON.stringify({ ...view, scans: shown.map(({ name }) => name) }); // for tests and other scripts
  }

  function redraw() {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  }

  function turn(right, up) {
    view.yaw = ((((view.yaw + right + 180) % 360) + 360) % 360) - 180;
    view.pitch = Math.max(-90, Math.min(90, view.pitch + up));
    redraw();
  }

  function zoom(factor) {
    view.zoom = Math.max(0.2, Math.min(60, view.zoom * factor));
    redraw();
  }

  function above() {
    Object.assign(view, START);
    redraw();
  }

  let last = null;
  canvas.addEventListener("pointerdown", (event) => {
    last = event;
    canvas.setPointerCapture(event.pointerId);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { last = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return;
    turn((event.clientX - last.clientX) * 0.4, (event.clientY - last.clientY) * 0.4);
    last = event;
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [0, 0];
    if (right || down) turn(8 * right, 8 * down);
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0" || event.key === "Home") above();
    else return;
    event.preventDefault();
  });
  for (const button of place.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => ({ in: () => zoom(1.25), out: () => zoom(0.8), above })[button.dataset.zoom]());
  }
  for (const one of switches) one.addEventListener("input", redraw);
  place.hidden = false;
  place.parentElement.querySelector("[data-instead]").hidden = true;
  new ResizeObserver(() => {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    [width, height] = [box.width, box.height];
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    redraw();
  }).observe(canvas);
}
