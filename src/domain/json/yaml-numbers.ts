import type { ScalarTag, Tags } from 'yaml';
import { isRawNumber, numberWithDigits } from './json.ts';

/** A number of YAML as JSON writes it: without a plus sign, leading zeros and bare dots. */
function asJson(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = ''] =
    /^([-+]?)0*(\d*)(?:\.(\d*))?([eE][-+]?\d+)?$/.exec(text) ?? [];
  return `${sign === '-' ? '-' : ''}${whole || '0'}${fraction && `.${fraction}`}${exponent}`;
}

/** The tag of decimal numbers in YAML, which keep their digits as those of JSON do (`parseJson`), read and written. */
export const exactNumbers: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: isRawNumber,
  test: /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/,
  resolve: (text) => numberWithDigits(asJson(text)),
  stringify: ({ value }) => String((value as { rawJSON: string }).rawJSON),
};

/** JSON would make null of them. */
const notJson: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  test: /^(?:[-+]?\.(?:inf|Inf|INF)|\.nan|\.NaN|\.NAN)$/,
  resolve: (text, onError) => onError(`${text} is no number of JSON; write a number, or quote the text`),
};

/** Options with which files of YAML that become JSON are read and written. */
export const yamlNumbers = { customTags: (tags: Tags): Tags => [exactNumbers, notJson, ...tags] };
