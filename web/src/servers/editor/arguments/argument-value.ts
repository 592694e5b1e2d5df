import { parseJson } from '../../../exact-json.ts';
/** The value of a typed text, by the argument's type. */
export function typedValue(text: string, type: unknown): unknown {
  if (text === '') return undefined;
  if (type === 'string') return text;
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

export function shownValue(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}
