import type { ScalarTag, Tags } from 'yaml';
import { isRawNumber, numberWithDigits } from './json.ts';

/** Writes a YAML number as JSON does: without a plus sign, leading zeros, and bare dots. */
function asJson(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = ''] =
    /^([-+]?)0*(\d*)(?:\.(\d*))?([eE][-+]?\d+)?$/.exec(text) ?? [];
  return `${sign === '-' ? '-' : ''}${whole || '0'}${fraction && `.${fraction}`}${exponent}`;
}

/** YAML tag for decimal numbers, read and written. Like JSON numbers (`parseJson`), they keep their digits. */
export const exactNumbers: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: isRawNumber,
  test: /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/,
  resolve: (text) => numberWithDigits(asJson(text)),
  stringify: ({ value }) => String((value as { rawJSON: string }).rawJSON),
};

/** YAML tag for numbers that JSON would turn into null. */
const notJson: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  test: /^(?:[-+]?\.(?:inf|Inf|INF)|\.nan|\.NaN|\.NAN)$/,
  resolve: (text, onError) => onError(`${text} is not a JSON number; write a number, or quote the text`),
};

/** Options for reading and writing YAML files that become JSON. */
export const yamlNumbers = { customTags: (tags: Tags): Tags => [exactNumbers, notJson, ...tags] };
