// A picture as PNG: the file in SVG, drawn on a canvas with light colors.
const button = document.getElementById("png-file");
const said = document.getElementById("png-said");
const file = document.getElementById("svg-file");
const SHARP = 2;
button.hidden = false;

async function draw() {
  const reply = await fetch(`${file.href}?colors=light`, { credentials: "same-origin" });
  if (!reply.ok || reply.redirected) throw new Error("no picture");
  const source = URL.createObjectURL(new Blob([await reply.text()], { type: "image/svg+xml" }));
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SHARP * image.naturalWidth;
  canvas.height = SHARP * image.naturalHeight;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(source);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

button.addEventListener("click", async () => {
  if (button.ariaDisabled === "true") return;
  button.ariaDisabled = "true"; // a button that is disabled would lose the focus
  try {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await draw());
    link.download = `${decodeURIComponent(new URL(file.href).pathname).split("/").pop().replace(/[^\w-]+/g, "-").replace(/-svg$/, "")}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    said.textContent = "";
  } catch {
    said.textContent = "The picture could not be drawn. Download it as SVG.";
  } finally {
    button.ariaDisabled = null;
  }
});
