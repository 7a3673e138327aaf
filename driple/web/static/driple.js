// Theme, sliders and dropped files; everything else works without it.
"use strict";

(() => {
  const theme = document.getElementById("theme");
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });

  // A slider doubles the number in its field at each step; the field is what is sent.
  for (const slider of document.querySelectorAll("input[type=range][data-for]")) {
    const field = document.getElementById(slider.dataset.for);
    slider.hidden = false;
    slider.value = field.value > 0 ? Math.round(Math.log2(field.value)) : slider.min;
    slider.addEventListener("input", () => { field.value = 2 ** slider.value; });
    field.addEventListener("input", () => {
      if (field.value > 0) slider.value = Math.round(Math.log2(field.value));
    });
  }

  // On a narrow screen the answer is below the form: a line at the bottom has its first words, and
  // what is submitted leads to it. Sliders leave the focus where it is.
  const answer = document.getElementById("answer");
  const jump = document.querySelector(".jump");
  const first = () => {
    const name = answer.querySelector("article h2");
    const words = answer.querySelector(".lines dd, .refused, [role=status]");
    const cluster = name && answer.querySelector(".lines") ? `${name.textContent}: ` : "";
    jump.textContent = words ? cluster + words.textContent : "See the answer";
  };
  first();
  let submitted = false;
  document.getElementById("ask").addEventListener("submit", () => { submitted = true; });
  document.addEventListener("htmx:after:swap", () => {
    first();
    if (submitted) {
      answer.focus({ preventScroll: true });
      answer.scrollIntoView();
    }
    submitted = false;
  });

  const file = document.querySelector("#drop input[type=file]");
  const kind = document.getElementById("file-kind");
  file.addEventListener("change", () => {
    const name = file.files.length ? file.files[0].name.toLowerCase() : "";
    if (/\.onnx(\.gz)?$/.test(name)) kind.value = "onnx";
    else if (name.endsWith(".json")) kind.value = "config";
    else kind.value = "graph";
  });
  document.getElementById("drop").addEventListener("submit", () => {
    const clusters = document.querySelector("#ask [name=clusters]").value;
    document.querySelector("#drop [name=clusters]").value = clusters;
  });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    file.files = event.dataTransfer.files;
    file.dispatchEvent(new Event("change"));
    document.getElementById("drop").requestSubmit();
  });
})();
