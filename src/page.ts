import { html, raw } from 'hono/html';

/** What `html` gives; text in it is escaped already. */
export type Markup = ReturnType<typeof html>;

const style = `
:root { color-scheme: light dark; --line: light-dark(#d8dde3, #333b45); --soft: light-dark(#56606c, #a3adb9); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 3rem 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); } pre { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; overflow-x: auto; }
`;

/** The frame of every page that the service renders itself: no script, readable in light and dark and on a phone. */
export function page(title: string, body: Markup): string {
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${raw(style)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`);
}

/** Control, bidirectional and zero-width characters would let a name pose as something else. */
export function visible(text: string): string {
  return text.replaceAll(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    '\ufffd',
  );
}
