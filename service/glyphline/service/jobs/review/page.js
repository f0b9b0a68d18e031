
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = data.rows;
  const reasons = {
    all: "all", reference: "not its reference", disagreement: "readings differ", confidence: "unsure", error: "error",
  };
  const byId = (id) => document.getElementById(id);

  // Builds an element. Text only ever becomes text, never markup.
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // What may stand in a line of labels.tsv: one line, one form of each character.
  const clean = (text) => text.replace(/[\t\r\n\u2028\u2029]+/g, " ").normalize("NFC");

  // Progress: for each row that was touched its text, whether that was accepted, and what had been read.
  const place = "glyphline-review:" + data.key;
  let kept = true;
  let states = {};
  try {
    states = JSON.parse(localStorage.getItem(place)) || {};
  } catch {
    states = {};
  }
  const keep = () => {
    try {
      localStorage.setItem(place, JSON.stringify(states));
    } catch {
      kept = false;
    }
  };
  const stateOf = (row) => {
    const state = Object.hasOwn(states, row.name) ? states[row.name] : null;
    return state && state.read === (row.text ?? null) ? state : null;
  };

  const number = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
  const percent = (value) => (value * 100).toFixed(1) + " %";
  const doubt = (confidence) =>
    confidence === null || confidence >= 0.99 ? "" : confidence >= 0.9 ? "u1" : confidence >= 0.6 ? "u2" : "u3";

  const textOf = (pieces, text) => {
    const box = make("bdi", { class: "text" });
    if (!pieces.length) box.append(text === "" ? "(blank)" : text);
    for (const [part, confidence, differs] of pieces) {
      const names = [doubt(confidence), differs ? "differs" : "", part === "" ? "gap" : ""].filter(Boolean);
      const piece = make("span", {}, part === "" ? "·" : part);
      if (names.length) piece.className = names.join(" ");
      if (confidence !== null) piece.title = percent(confidence);
      box.append(piece);
    }
    return box;
  };

  const views = rows.map((row, index) => {
    const article = make("article", { class: "row", "data-index": index });
    const left = make("div", { class: "strip" });
    const right = make("div", { class: "right" });
    if (row.picture) {
      const image = make("img", { alt: "", decoding: "async", width: row.width, height: row.height });
      image.style.setProperty("--ratio", row.width / row.height);
      image.src = row.picture;
      left.append(image);
    }
    if (row.error) {
      right.append(make("p", { class: "without" }, `${row.error.code}: ${row.error.message}`, make("small", {}, row.error.advice)));
    }
    if (row.missing) left.append(make("p", { class: "without" }, "No picture: " + row.missing));
    if (row.pieces && row.pieces.length) right.append(make("p", { class: "read" }, textOf(row.pieces, row.text)));
    let field = null;
    if (row.picture) {
      field = make("input", {
        type: "text", dir: "auto", "aria-label": "Text of " + row.id, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
        placeholder: row.text === "" ? "(blank)" : "",
      });
      const accept = make("button", { type: "button", class: "accept", title: "Right as it stands (Enter)", tabindex: -1 }, "✓");
      right.append(make("div", { class: "field" }, field, accept));
    } else if (row.text !== undefined && !row.pieces.length) {
      right.append(make("p", { class: "read" }, textOf([], row.text)));
    }
    if (row.suggestions.length) {
      const box = make("div", { class: "suggestions" });
      row.suggestions.forEach((each, index) => {
        const button = make("button", { type: "button", "data-suggestion": index, tabindex: -1 });
        if (field && index < 9) button.append(make("kbd", {}, String(index + 1)), " ");
        button.append(textOf(each.pieces, each.text), make("small", {}, each.note));
        button.disabled = !field;
        box.append(button);
      });
      right.append(box);
    }
    const about = make("p", { class: "about" }, make("b", {}, reasons[row.reason]));
    if (row.text !== undefined) about.append(" · " + percent(row.confidence));
    if (row.cut) about.append(" · cut short at the longest text");
    const told = make("span", { class: "state" });
    about.append(" · ", make("bdi", {}, row.id), told);
    right.append(about);
    article.append(left, right);
    return { row, article, field, told };
  });

  const show = (view) => {
    const state = stateOf(view.row);
    if (view.field && document.activeElement !== view.field) view.field.value = state ? state.text : view.row.text ?? "";
    const accepted = Boolean(state && state.done);
    view.article.classList.toggle("accepted", accepted);
    view.article.classList.toggle("edited", Boolean(state && !state.done));
    const changed = state && state.text !== view.row.text;
    view.told.textContent = !state ? "" : accepted ? (changed ? " · corrected" : " · accepted") : " · edited, Enter accepts it";
  };

  const open = views.filter((view) => view.field);
  const count = () => {
    const states = open.map((view) => [view, stateOf(view.row)]).filter(([, state]) => state);
    const done = states.filter(([, state]) => state.done);
    const corrected = done.filter(([view, state]) => state.text !== view.row.text).length;
    const edited = states.length - done.length;
    byId("counts").textContent =
      `${done.length} of ${open.length} reviewed, ${corrected} corrected` + (edited ? `, ${edited} edited but not accepted` : "");
    byId("progress").value = open.length ? done.length / open.length : 1;
    byId("save").textContent = `Save ${number(done.length, "label")}`;
    byId("save").disabled = !done.length;
    return { done, edited };
  };

  // Which rows are shown. One that has just been accepted stays until the filter is set again: it may be undone.
  let reason = "all";
  const filter = () => {
    const wanted = byId("search").value.toLowerCase();
    let shown = 0;
    for (const view of views) {
      const state = stateOf(view.row);
      const texts = [view.row.id, view.row.text ?? "", state ? state.text : ""];
      const fits =
        (reason === "all" || view.row.reason === reason) &&
        !(byId("open").checked && (!view.field || (state && state.done))) &&
        (!wanted || texts.some((text) => text.toLowerCase().includes(wanted)));
      view.article.hidden = !fits;
      shown += fits;
    }
    byId("nothing").hidden = shown > 0;
    for (const button of byId("reasons").children) button.setAttribute("aria-pressed", String(button.dataset.reason === reason));
  };

  const tell = (text) => {
    byId("told").textContent = text;
    byId("told").hidden = !text;
  };

  const change = (view, state) => {
    if (state) states[view.row.name] = state;
    else delete states[view.row.name];
    keep();
    show(view);
    count();
    if (!kept) tell("Progress cannot be kept in this browser: save the labels before the page is closed.");
  };

  // The caret stands at the end and nothing is selected, so that a stray key costs no more than one character.
  const enter = (view, scroll = true) => {
    view.field.focus({ preventScroll: true });
    view.field.setSelectionRange(view.field.value.length, view.field.value.length);
    if (scroll) view.article.scrollIntoView({ block: "nearest" });
  };

  const move = (view, step) => {
    let index = views.indexOf(view) + step;
    while (views[index] && (views[index].article.hidden || !views[index].field)) index += step;
    const next = views[index];
    if (next) enter(next);
    return Boolean(next);
  };

  const nextOpen = (view) => {
    let index = views.indexOf(view) + 1;
    while (views[index] && (views[index].article.hidden || !views[index].field || (stateOf(views[index].row) || {}).done)) index += 1;
    if (views[index]) return move(views[index - 1], 1);
    view.field.blur();
    tell("That was the last row. " + (count().done.length ? "Save the labels now." : ""));
    return false;
  };

  const accepted = []; // in the order in which they were, for Esc
  const accept = (view) => {
    const read = view.row.text ?? null;
    const typed = clean(view.field.value);
    const text = typed === read ? typed : typed.trim();
    if (read === null && text === "") return nextOpen(view); // without a reading there is nothing to accept
    view.field.value = text;
    accepted.push(view);
    change(view, { text, done: true, read });
    return nextOpen(view);
  };

  const undo = (view) => {
    let target = view;
    if (!stateOf(view.row)) {
      do target = accepted.pop();
      while (target && !(stateOf(target.row) || {}).done);
      if (!target) return;
    }
    target.field.value = target.row.text ?? "";
    change(target, null);
    target.article.hidden = false;
    enter(target);
  };

  const take = (view, index) => {
    const suggestion = view.row.suggestions[index];
    if (!suggestion) return;
    view.field.value = suggestion.text;
    accept(view);
  };

  const save = () => {
    const { done, edited } = count();
    if (!done.length) return tell("No row is accepted yet: Enter accepts the one at hand.");
    const lines = done.map(([view, state]) => `${view.row.name}\t${state.text}\n`);
    const address = URL.createObjectURL(new Blob(lines, { type: "text/tab-separated-values;charset=utf-8" }));
    make("a", { href: address, download: "labels.tsv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    const left = edited ? ` Edited but not accepted, so left out: ${number(edited, "row")}.` : "";
    tell(`Saved as labels.tsv: ${number(done.length, "label")}.${left} Makes a data set to train with: ${data.command}`);
  };

  const viewOf = (element) => {
    const article = element instanceof Element ? element.closest("article") : null;
    return article ? views[Number(article.dataset.index)] : null;
  };

  byId("rows").addEventListener("input", (event) => {
    const view = viewOf(event.target);
    const text = clean(view.field.value);
    const read = view.row.text ?? null;
    change(view, text === (read ?? "") ? null : { text, done: false, read });
  });
  byId("rows").addEventListener("click", (event) => {
    const view = viewOf(event.target);
    const button = event.target.closest("button");
    if (!view || !view.field || !button) return;
    if (button.dataset.suggestion !== undefined) take(view, Number(button.dataset.suggestion));
    else accept(view);
  });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // an input method is at work: its Enter is not ours
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s") {
      event.preventDefault();
      save();
      return;
    }
    if (event.target === byId("search") || event.ctrlKey || event.metaKey) return;
    const view = viewOf(event.target);
    const digit = /^Digit([1-9])$/.exec(event.code);
    if (!view || !view.field) {
      const down = event.key === "ArrowDown" || event.key === "Enter";
      if (down && event.target === document.body && move(null, 1)) event.preventDefault();
      else if (event.key === "Escape" && accepted.length) undo(accepted[accepted.length - 1]);
    } else if (event.altKey && digit) {
      event.preventDefault();
      take(view, Number(digit[1]) - 1);
    } else if (event.altKey || event.shiftKey) {
      return;
    } else if (event.key === "Enter" && event.target === view.field) {
      event.preventDefault();
      accept(view);
    } else if (event.key === "Escape") {
      event.preventDefault();
      undo(view);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(view, event.key === "ArrowDown" ? 1 : -1);
    }
  });
  byId("save").addEventListener("click", save);
  byId("open").addEventListener("change", filter);
  byId("search").addEventListener("input", filter);
  byId("reasons").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    reason = button.dataset.reason;
    filter();
  });
  window.addEventListener("beforeunload", (event) => {
    if (!kept) event.preventDefault();
  });

  for (const [name, label] of Object.entries(reasons)) {
    const found = name === "all" ? rows.length : rows.filter((row) => row.reason === name).length;
    if (found) byId("reasons").append(make("button", { type: "button", "data-reason": name }, `${label} ${found}`));
  }
  byId("rows").append(...views.map((view) => view.article));
  views.forEach(show);
  count();
  filter();
  const first = open.find((view) => !(stateOf(view.row) || {}).done);
  if (first) enter(first, first !== open[0]); // at the beginning the page's head stays to be seen
})();
