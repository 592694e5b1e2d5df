/** Positions in a text that is known to be compact JSON: without white space between its tokens. */

const backslash = 0x5c;

/** The position behind a string whose opening quote is at `at`. */
export function endOfString(json: string, at: number): number {
  for (let quote = json.indexOf('"', at + 1); ; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (json.charCodeAt(quote - 1 - slashes) === backslash) slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
}

/** The position behind a number or a literal. */
export function endOfScalar(json: string, at: number): number {
  let end = at + 1;
  while (end < json.length && !',]}'.includes(json[end] as string)) end++;
  return end;
}

/** The position behind a value. */
export function endOfValue(json: string, at: number): number {
  const first = json[at];
  if (first === '"') return endOfString(json, at);
  if (first !== '{' && first !== '[') return endOfScalar(json, at);
  let depth = 0;
  let position = at;
  do {
    const sign = json[position];
    if (sign === '"') {
      position = endOfString(json, position);
      continue;
    }
    position++;
    if (sign === '{' || sign === '[') depth++;
    else if (sign === '}' || sign === ']') depth--;
  } while (depth > 0);
  return position;
}

/** A list in a JSON text: `json[from]` is its opening bracket, `json[end - 1]` its closing one. */
export type List = { path: string; from: number; end: number };

const longestPath = 60;

/** The longest list that is not inside another one; undefined when there is none. */
export function largestList(json: string): List | undefined {
  let largest: List | undefined;
  const visit = (at: number, path: string): number => {
    if (json[at] === '[') {
      const end = endOfValue(json, at);
      if (end - at > (largest ? largest.end - largest.from : 2)) largest = { path, from: at, end };
      return end;
    }
    if (json[at] !== '{') return endOfValue(json, at);
    let position = at + 1;
    while (json[position] !== '}') {
      if (json[position] === ',') position++;
      const colon = endOfString(json, position);
      const name = json.slice(position + 1, colon - 1);
      position = visit(colon + 1, path.length > longestPath ? path : path === '' ? name : `${path}.${name}`);
    }
    return position + 1;
  };
  visit(0, '');
  return largest && { ...largest, path: largest.path.slice(0, longestPath) };
}
