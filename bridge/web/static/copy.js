// Puts a button after each element with data-copy, which copies its text. Without this script the text can be selected.
"use strict";

function selectText(element) {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}

// Browsers have navigator.clipboard only over https and on localhost.
async function copyText(element) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(element.textContent);
      return true;
    } catch {
      // The browser does not allow it here.
    }
  }
  selectText(element);
  return document.execCommand("copy");
}

for (const element of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(element)) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  element.after(button);
}
