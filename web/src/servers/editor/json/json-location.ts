import { pathText } from '../../config.ts';

type Level = { key: string | undefined; isArray: boolean; isKey: boolean; index: number };

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g;

/** The characters of a JSON text that a path such as `tools[1].url` names, or the nearest value around them. */
export function locationInJson(text: string, path: string): { start: number; end: number } | undefined {
  const stack: Level[] = [];
  let best: { start: number; end: number } | undefined;
  let length = 0;
  const visit = (start: number, end: number) => {
    const here = pathText(stack.map((level) => (level.isArray ? level.index : (level.key ?? ''))));
    const isAround = path === here || (path.startsWith(here) && /^[.[]/.test(path.slice(here.length)));
    if (!isAround || here.length <= length) return;
    best = { start, end };
    length = here.length;
  };
  for (const { 0: token, index } of text.matchAll(tokens)) {
    const top = stack.at(-1);
    if (token === '{' || token === '[') {
      if (top?.isArray) visit(index, index + 1);
      stack.push({ key: undefined, isArray: token === '[', isKey: token === '{', index: 0 });
    } else if (token === '}' || token === ']') stack.pop();
    else if (token === ':' && top) top.isKey = false;
    else if (token === ',' && top) {
      top.isKey = !top.isArray;
      top.index++;
    } else if (top?.isKey) {
      top.key = token.slice(1, -1);
      visit(index, index + token.length);
    }
  }
  return best;
}
