import { Fragment, type ReactNode } from 'react';

/** List of labels and values. Facts without a value are omitted. */
export function Facts({ facts }: { facts: readonly (readonly [label: string, value: ReactNode])[] }) {
  return (
    <dl className="th-facts">
      {facts.map(
        ([label, value]) =>
          value !== undefined && (
            <Fragment key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}
