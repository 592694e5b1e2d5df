import { plainFailure } from '../../errors.ts';
import { isHeaderValue } from '../http/headers.ts';
import { mostHeaderLength, refuseLonger, valueText } from '../http/values.ts';
import { isSeparated, styledText } from './pairs.ts';
import type { SentArgument } from './sent-argument.ts';

/** The header lines that an argument becomes, names and values in turn. @throws ToolFailure invalid_arguments */
export function argumentHeaders(argument: SentArgument, value: unknown): string[] {
  const { name, wireName, style } = argument;
  if (style === 'repeat' && Array.isArray(value)) {
    refuseLonger(name, value.length * wireName.length, mostHeaderLength, 'a header');
    const lines = value.flatMap((item) => line(argument, valueText(name, item)));
    refuseLonger(name, lines.join('').length, mostHeaderLength, 'a header');
    return lines;
  }
  if (style === 'json') return line(argument, value === null ? undefined : asciiJson(name, value));
  return line(argument, isSeparated(style) && value !== null ? styledText(argument, value) : valueText(name, value));
}

/** A pair of name and value; none for an argument without a text. */
function line({ name, wireName }: SentArgument, text: string | undefined): string[] {
  if (text === undefined) return [];
  refuseLonger(name, text.length, mostHeaderLength, 'a header');
  return [wireName, headerText(wireName, text)];
}

/** JSON in ASCII, as a header needs it: other characters are escaped. @throws ToolFailure invalid_arguments */
function asciiJson(name: string, value: unknown): string {
  const json = JSON.stringify(value);
  // Before anything is escaped, which makes no text shorter.
  refuseLonger(name, json.length, mostHeaderLength, 'a header');
  return json.replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** @throws ToolFailure invalid_arguments */
export function headerText(name: string, value: string): string {
  if (isHeaderValue(value)) return value;
  const message = `the value for the header ${name} has characters that a header cannot hold`;
  throw plainFailure('invalid_arguments', message);
}
