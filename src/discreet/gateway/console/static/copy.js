// A button that copies what is shown once. Without scripts, one selects the text.
for (const button of document.querySelectorAll("[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  const said = button.parentElement.querySelector("[data-said]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(field.value);
      said.textContent = "Copied.";
    } catch {
      field.focus();
      field.select();
      said.textContent = "Selected. Press Ctrl-C.";
    }
  });
}
