import type { BodyNode, BodyTemplate } from '../config/sending/body-template.ts';
import type { Part } from '../http/url-template.ts';
import { valueText } from '../http/values.ts';
import { refusedArgument } from './pairs.ts';
import { type Arguments, own } from './sent-argument.ts';

/** Most characters that the copies of all arguments together may become. */
const mostOfCopies = 4 * 1024 * 1024;

/** Arguments and secrets that fill a template. */
export type BodyValues = { args: Arguments; secret: (name: string) => string };

/**
 * The body of a call as a value; undefined when all of it is one argument that is absent.
 * @throws ToolFailure invalid_arguments when a text lacks one of its arguments, or copies of an argument become too long
 */
export function fillBodyTemplate({ root, repeats }: BodyTemplate, values: BodyValues): unknown {
  const { args } = values;
  let copied = 0;
  for (const [name, count] of repeats) {
    const value = own(args, name);
    const length = value === undefined ? 0 : JSON.stringify(value).length;
    copied += length * count;
    if (copied > mostOfCopies)
      throw refusedArgument({ name }, `is sent ${count} times in one body, which makes it too long; send less`);
  }
  return filled(root, values);
}

function filled(node: BodyNode, values: BodyValues): unknown {
  switch (node.kind) {
    case 'literal':
      return node.value;
    case 'argument':
      return own(values.args, node.name);
    case 'text':
      return filledText(node.parts, values);
    case 'array':
      return node.items.map((item) => filled(item, values)).filter((item) => item !== undefined);
    case 'object': {
      const entries = node.entries.map(([name, value]): [string, unknown] => [name, filled(value, values)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
  }
}

/** A text is absent when none of its arguments is present. */
function filledText(parts: readonly Part[], { args, secret }: BodyValues): string | undefined {
  const absent: string[] = [];
  let present = 0;
  let text = '';
  for (const part of parts) {
    if (!('argument' in part)) {
      text += 'text' in part ? part.text : secret(part.secret);
      continue;
    }
    const piece = valueText(part.argument, own(args, part.argument));
    if (piece === undefined) absent.push(part.argument);
    else present++;
    text += piece ?? '';
  }
  if (absent.length === 0) return text;
  if (present === 0) return undefined;
  throw refusedArgument({ name: [...new Set(absent)].join(', ') }, 'is missing; a text of the body needs it');
}
