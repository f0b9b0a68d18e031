// The picture to read: drawn on the canvas, or a file that was chosen, dropped or pasted, or an example.
// `element`, `props` and `trigger` are what the page's library gives to a component of its own.
const find = (selector) => element.querySelector(selector);
const canvas = find("canvas"), shown = find(".shown"), told = find(".told"), file = find("input");
const pen = canvas.getContext("2d");
const FINE = 2; // pixels of the canvas for one of the page
const HINT = "Draw digits here, drop a picture, or paste one.";
let strokes = [], drawing = null, number = 0;

function tell(message, wrong = false) {
  told.textContent = message;
  told.classList.toggle("wrong", wrong);
}

// What is set as value is what the next reading gets. The number tells two pictures apart that are alike.
function send(kind, address, task = null) {
  props.value = { kind, address, task, number: ++number };
  trigger("change");
}

function redraw() {
  canvas.width = FINE * canvas.clientWidth;
  canvas.height = FINE * canvas.clientHeight;
  pen.scale(FINE, FINE);
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.lineWidth = 8;
  pen.lineCap = pen.lineJoin = "round";
  for (const stroke of strokes) draw(stroke, 0);
}

function draw(stroke, from) {
  pen.beginPath();
  pen.moveTo(...stroke[Math.max(0, from - 1)]);
  for (const point of stroke.slice(from)) pen.lineTo(...point);
  pen.stroke();
}

function showCanvas() {
  shown.hidden = true;
  shown.removeAttribute("src");
  canvas.hidden = false;
  file.value = "";
  redraw();
}

function sendDrawing() {
  tell(strokes.length ? "Drawn by hand." : HINT);
  send("drawing", strokes.length ? canvas.toDataURL("image/png") : "");
}

function showPicture(name, address, task) {
  strokes = [];
  canvas.hidden = true;
  shown.hidden = false;
  shown.alt = `The picture ${name}`;
  shown.src = address;
  tell(name);
  send("file", address, task);
}

shown.addEventListener("error", () => {
  if (!shown.hasAttribute("src")) return;
  shown.hidden = true;
  tell(`${shown.alt.slice(12)}: the browser cannot show it.`);
});

function take(given) {
  if (given.size > props.most_bytes) {
    tell(`${given.name}: has ${(given.size / 2 ** 20).toFixed(1)} MiB; at most ${props.most_bytes / 2 ** 20} are read.`, true);
    return;
  }
  const reader = new FileReader();
  reader.onload = () => showPicture(given.name || "pasted picture", reader.result);
  reader.onerror = () => tell(`${given.name}: the browser could not read it.`, true);
  reader.readAsDataURL(given);
}

function placeOf(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || drawing) return;
  event.preventDefault();
  canvas.setPointerCapture(event.pointerId);
  drawing = { pointer: event.pointerId, stroke: [placeOf(event)] };
  strokes.push(drawing.stroke);
  draw(drawing.stroke, 0);
});

canvas.addEventListener("pointermove", (event) => {
  if (drawing?.pointer !== event.pointerId) return;
  const from = drawing.stroke.length;
  const events = event.getCoalescedEvents?.() ?? [];
  for (const each of events.length ? events : [event]) drawing.stroke.push(placeOf(each));
  draw(drawing.stroke, from);
});

for (const ending of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(ending, (event) => {
    if (drawing?.pointer !== event.pointerId) return;
    drawing = null;
    sendDrawing();
  });
}

element.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.example !== undefined) {
    const { name, address, task } = props.examples[Number(button.dataset.example)];
    showPicture(name, address, task);
  } else {
    strokes = button.dataset.do === "undo" && !canvas.hidden ? strokes.slice(0, -1) : [];
    showCanvas();
    sendDrawing();
  }
});

file.addEventListener("change", () => file.files.length && take(file.files[0]));

// Anywhere on the page: a picture that is dropped beside the canvas would else take the page's place.
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
});
document.addEventListener("paste", (event) => {
  const pasted = [...event.clipboardData.files].find((each) => each.type.startsWith("image/"));
  if (!pasted) return;
  event.preventDefault();
  take(pasted);
});

for (const each of element.querySelectorAll(".examples img")) {
  each.decode().then(() => each.classList.toggle("long", each.naturalWidth > 5 * each.naturalHeight));
}
new ResizeObserver(() => {
  if (!canvas.hidden && !drawing) redraw();
}).observe(canvas);
tell(HINT);
