import type { Activity } from '../../answers.ts';

const width = 120;
const height = 28;

/** The calls of the last day, a bar an hour. */
export function Sparkline({ activity }: { activity: Activity }) {
  const most = Math.max(1, ...activity.hourly);
  const step = width / activity.hourly.length;
  const errors = activity.errors > 0 ? `, ${activity.errors} with errors` : '';
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`${activity.calls} calls in the last 24 hours${errors}`}
    >
      {activity.hourly.map((calls, hour) => {
        const bar = calls === 0 ? 1.5 : Math.max(3, (calls / most) * height);
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: the hour is what a bar is
            key={hour}
            x={hour * step + 0.75}
            y={height - bar}
            width={step - 1.5}
            height={bar}
            rx={1}
            fill={calls === 0 ? 'var(--th-line)' : 'var(--th-accent)'}
          />
        );
      })}
    </svg>
  );
}
