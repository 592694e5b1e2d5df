import { SegmentedControl, Stack } from '@mantine/core';
import { Outlet, useLocation, useNavigate } from 'react-router';
import { useCurrentServer } from '../server-page.tsx';

/** Two ways to try the tools: a form that calls one, and a model that chooses among them. */
export function TryPage() {
  const detail = useCurrentServer();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  return (
    <Stack gap="md">
      <SegmentedControl
        className="th-modes"
        aria-label="Mode"
        data={[
          { value: '.', label: 'Form' },
          { value: 'playground', label: 'Playground' },
        ]}
        value={pathname.endsWith('/playground') ? 'playground' : '.'}
        onChange={(next) => navigate(next)}
      />
      <Outlet context={detail} />
    </Stack>
  );
}
