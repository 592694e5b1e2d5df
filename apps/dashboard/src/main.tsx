import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './app.css';
import { MantineProvider } from '@mantine/core';
import { Notifications } from '@mantine/notifications';
import { notifyManager, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { RouterProvider } from 'react-router/dom';
import { createQueryClient } from './query-client.ts';
import { createRouter } from './router.tsx';
import { theme } from './theme.ts';
import { PressProvider, watchPress } from './ui/actions/press.ts';

/** Nonce of style elements that the Content-Security-Policy allows; see `apps/server/src/manage/router.ts`. */
const nonce = document.querySelector<HTMLMetaElement>('meta[name="style-nonce"]')?.content ?? '';
// The library that locks scrolling behind a dialog reads the nonce here.
Object.assign(globalThis, { __webpack_nonce__: nonce });

// The space that `scrollbar-gutter` reserves; see `app.css`.
const { style, offsetWidth } = document.documentElement;
style.setProperty('--th-scroll-bar', `${window.innerWidth - offsetWidth}px`);

const press = watchPress(window);
// Every response of the service reaches the page through this scheduler.
notifyManager.setScheduler((run) => setTimeout(() => press.afterClick(run)));

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        <Notifications position="bottom-right" autoClose={4000} limit={3} />
        <PressProvider value={press}>
          <QueryClientProvider client={createQueryClient()}>
            <RouterProvider router={createRouter()} />
          </QueryClientProvider>
        </PressProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
