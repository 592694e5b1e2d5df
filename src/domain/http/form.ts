/** Forms of OAuth have some ten fields. A hundred thousand short ones take long to read. */
const mostFields = 500;

/** The fields of a form (WHATWG URL, application/x-www-form-urlencoded); undefined for one with more than 500 fields. */
export function formFields(text: string): URLSearchParams | undefined {
  let fields = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) if (++fields > mostFields) return undefined;
  return new URLSearchParams(text);
}
