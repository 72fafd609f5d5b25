"use strict";
// Draw two sets of points and the pairs between them; turn (3-D) or move (2-D) the view; go from before to after.
for (const place of document.querySelectorAll("[data-overlay]")) {
  const data = JSON.parse(place.querySelector("[data-view]").textContent);
  const canvas = place.querySelector("canvas"), pen = canvas.getContext("2d");
  const slider = place.querySelector("[data-progress]");
  const names = ["real", "doubtful", "wrong"], LAYERS = 10, START = data.flat ? { yaw: 0, pitch: 90 } : { yaw: -35, pitch: 22 };
  const coordinates = (whole) => whole && Float32Array.from(whole, (value) => value / data.unit);
  const [source, target, moved] = [data.source, data.target, data.moved].map(coordinates);
  const [starts, ends, movedStarts] = [data.starts, data.ends, data.moved_starts].map(coordinates);
  const view = { ...START, zoom: 1, x: 0, y: 0 };
  let colours = {}, width = 0, height = 0, waiting = false;

  const progress = () => (slider ? Number(slider.value) / 100 : 1);

  // The matrix of the motion at time t, straight between two of its steps.
  function motion(t) {
    const at = t * (data.steps.length - 1), first = Math.min(Math.floor(at), data.steps.length - 2), share = at - first;
    return data.steps[first].map((value, place) => (1 - share) * value + share * data.steps[first + 1][place]);
  }

  // Where points are at time t: turned as a whole, or each on a straight line where a projection is shown.
  function placed(points, after, t) {
    if (!data.steps && !after) return points;
    const result = new Float32Array(points.length), m = data.steps && motion(t);
    for (let i = 0; i < points.length; i += 3) {
      for (let axis = 0; axis < 3; axis += 1) {
        result[i + axis] = m
          ? m[4 * axis] * points[i] + m[4 * axis + 1] * points[i + 1] + m[4 * axis + 2] * points[i + 2] + m[4 * axis + 3]
          : (1 - t) * points[i + axis] + t * after[i + axis];
      }
    }
    return result;
  }

  // From the space of the target to pixels and depth (-1 far, 1 near), as a slightly wide lens sees it.
  function camera(t) {
    const [cx, cy, cz, wide] = data.first_view.map((value, place) => (1 - t) * value + (place === 3 ? t : 0));
    const radians = Math.PI / 180, yaw = view.yaw * radians, pitch = view.pitch * radians;
    const [sy, cyaw, sp, cp] = [Math.sin(yaw), Math.cos(yaw), Math.sin(pitch), Math.cos(pitch)];
    const scale = (Math.min(0.47 * width, (data.flat ? 0.48 : 0.54) * height) * view.zoom) / wide;
    return (x, y, z) => {
      const [dx, dy, dz] = [x - cx, y - cy, z - cz];
      const right = cyaw * dx - sy * dy, back = sy * dx + cyaw * dy;
      const up = cp * dz + sp * back, near = sp * dz - cp * back;
      const depth = Math.max(-1, Math.min(1, near / wide));
      const lens = data.flat ? scale : scale / Math.max(0.2, 1 - (0.18 * near) / wide);
      return [width / 2 + view.x + right * lens, height / 2 + view.y - up * lens, data.flat ? 0 : depth];
    };
  }

  function drawPoints(sets, look) {
    const layers = Array.from({ length: LAYERS }, () => sets.map(() => []));
    sets.forEach(({ points }, which) => {
      for (let i = 0; i < points.length; i += 3) {
        const [x, y, depth] = look(points[i], points[i + 1], points[i + 2]);
        if (x < -4 || y < -4 || x > width + 4 || y > height + 4) continue;
        layers[Math.min(LAYERS - 1, Math.floor(((depth + 1) / 2) * LAYERS))][which].push(x, y);
      }
    });
    const crowd = Math.max(...sets.map(({ points }) => points.length / 3));
    const size = (crowd > 2000 ? 2.2 : crowd > 500 ? 2.8 : 4) * Math.min(2, Math.sqrt(view.zoom)) * (width < 500 ? 0.85 : 1);
    layers.forEach((layer, level) => {
      const near = data.flat ? 0.8 : level / (LAYERS - 1), side = size * (0.75 + 0.5 * near);
      pen.globalAlpha = data.flat ? 0.75 : 0.22 + 0.68 * near;
      layer.forEach((spots, which) => {
        pen.fillStyle = colours[sets[which].colour];
        for (let i = 0; i < spots.length; i += 2) pen.fillRect(spots[i] - side / 2, spots[i + 1] - side / 2, side, side);
      });
    });
  }

  function drawLines(look, t) {
    const from = placed(starts, movedStarts, t), isShown = names.map((name) => place.querySelector(`[data-lines=${name}]`)?.checked);
    for (const code of [2, 1, 0]) {
      if (!isShown[code]) continue;
      pen.globalAlpha = code === 2 ? 0.35 : 0.55;
      pen.strokeStyle = colours[names[code]];
      pen.lineWidth = 1;
      pen.beginPath();
      data.verdicts.forEach((verdict, pair) => {
        if (verdict !== code) return;
        const i = 3 * pair, [x, y] = look(from[i], from[i + 1], from[i + 2]), [u, v] = look(ends[i], ends[i + 1], ends[i + 2]);
        pen.moveTo(x, y);
        pen.lineTo(u, v);
      });
      pen.stroke();
    }
  }

  function draw() {
    waiting = false;
    const t = progress(), look = camera(t), ratio = window.devicePixelRatio || 1;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    drawLines(look, t);
    drawPoints([{ points: target, colour: "target" }, { points: placed(source, moved, t), colour: "source" }], look);
    pen.globalAlpha = 1;
    canvas.dataset.shown = JSON.stringify({ ...view, progress: t }); // for tests and other scripts
  }

  function redraw() {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  }

  function measure() {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    [width, height] = [box.width, box.height];
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    redraw();
  }

  function readColours() {
    const style = getComputedStyle(place);
    for (const name of [...names, "source", "target"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
    redraw();
  }

  function turn(right, up) {
    view.yaw = ((((view.yaw + right + 180) % 360) + 360) % 360) - 180;
    view.pitch = Math.max(-90, Math.min(90, view.pitch + up));
    redraw();
  }

  function move(right, down) {
    view.x += right;
    view.y += down;
    redraw();
  }

  function zoom(factor, x = width / 2, y = height / 2) {
    const now = Math.max(0.2, Math.min(60, view.zoom * factor)), real = now / view.zoom;
    view.x = (x - width / 2) * (1 - real) + view.x * real; // what is under the pointer stays there
    view.y = (y - height / 2) * (1 - real) + view.y * real;
    view.zoom = now;
    redraw();
  }

  function reset() {
    Object.assign(view, START, { zoom: 1, x: 0, y: 0 });
    redraw();
  }

  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, event);
    canvas.setPointerCapture(event.pointerId);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const dx = event.clientX - last.clientX, dy = event.clientY - last.clientY;
    const other = [...pointers.values()].find((pointer) => pointer.pointerId !== event.pointerId);
    pointers.set(event.pointerId, event);
    if (other) {
      const apart = (pointer) => Math.hypot(pointer.clientX - other.clientX, pointer.clientY - other.clientY);
      const box = canvas.getBoundingClientRect();
      zoom(apart(event) / Math.max(apart(last), 1), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
      move(dx / 2, dy / 2);
    } else if (data.flat || event.shiftKey) move(dx, dy);
    else turn(dx * 0.4, dy * 0.4);
  });
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return; // the page scrolls on until the picture is chosen
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [0, 0];
    if (right || down) data.flat || event.shiftKey ? move(-24 * right, -24 * down) : turn(8 * right, 8 * down);
    else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0" || event.key === "Home") reset();
    else return;
    event.preventDefault();
  });
  for (const button of place.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => ({ in: () => zoom(1.25), out: () => zoom(0.8), reset })[button.dataset.zoom]());
  }
  for (const control of place.querySelectorAll("[data-progress], [data-lines]")) control.addEventListener("input", redraw);
  for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", readColours);
  place.hidden = false;
  place.parentElement.querySelector("[data-instead]").hidden = true;
  new ResizeObserver(measure).observe(canvas);
  measure();
  readColours();
}
