/** Numbers that JavaScript writes back as they were: short ones that neither end in a fraction's 0 nor are −0. */
const sturdyNumber = /^(?:0|-?[1-9]\d{0,14}|-?(?=.{1,16}$)(?:0|[1-9]\d*)\.(?!0{6})\d*[1-9])$/;

/**
 * What a number in JSON text becomes when its digits are kept (`1.10`, `9007199254740993`): a `JSON.rawJSON` object, where
 * an ordinary number would be written in another way.
 */
export function numberWithDigits(source: string): unknown {
  if (sturdyNumber.test(source)) return Number(source);
  const value = Number(source);
  return String(value) === source ? value : JSON.rawJSON(source);
}
