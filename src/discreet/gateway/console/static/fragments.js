// The only place where HTML becomes a part of a page: HTML that our own server has rendered, with everything escaped.
const policy = globalThis.trustedTypes?.createPolicy("fragments", { createHTML: (text) => text });

// The nodes in a text of HTML.
export function nodesIn(html) {
  const holder = document.createElement("template");
  holder.innerHTML = policy ? policy.createHTML(html) : html;
  return holder.content;
}

// Send a form to a path of ours. Gives the nodes of the reply, or null if the reply is no part of a page.
export async function postForm(path, form, signal) {
  const sent = { method: "POST", body: new URLSearchParams(new FormData(form)), signal, credentials: "same-origin" };
  const reply = await fetch(path, sent);
  return reply.ok && !reply.redirected ? nodesIn(await reply.text()) : null;
}
