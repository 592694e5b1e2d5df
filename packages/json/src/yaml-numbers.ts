import type { ScalarTag, Tags } from 'yaml';
import { isRawNumber, toExactNumber } from './json.ts';

/** Writes a YAML number as JSON does: without a plus sign, leading zeros, and bare dots. */
function toJsonNumber(text: string): string {
  const [, sign, integer = '', fraction = '', exponent = ''] =
    /^([-+]?)0*(\d*)(?:\.(\d*))?([eE][-+]?\d+)?$/.exec(text) ?? [];
  return `${sign === '-' ? '-' : ''}${integer || '0'}${fraction && `.${fraction}`}${exponent}`;
}

/** YAML tag for decimal numbers, read and written. Like JSON numbers (`parseJson`), they keep their digits. */
export const exactNumberTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: isRawNumber,
  test: /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/,
  resolve: (text) => toExactNumber(toJsonNumber(text)),
  stringify: ({ value }) => String((value as { rawJSON: string }).rawJSON),
};

/** YAML tag for numbers that JSON would turn into null. */
const nonFiniteNumberTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  test: /^(?:[-+]?\.(?:inf|Inf|INF)|\.nan|\.NaN|\.NAN)$/,
  resolve: (text, onError) => onError(`${text} is not a JSON number; write a number, or quote the text`),
};

/** Options for reading and writing YAML files that become JSON. */
export const yamlNumberOptions = { customTags: (tags: Tags): Tags => [exactNumberTag, nonFiniteNumberTag, ...tags] };
