import './styles/index.css';

import { render } from 'preact';

import { boot } from './state/app';
import { watchLifecycle } from './state/lifecycle';
import { applyTheme } from './state/theme';
import { App } from './view/app';
import { watchKeys } from './view/keys';
import { preload } from './view/lazy';

applyTheme();
const root = document.getElementById('page');
if (root !== null) render(<App />, root);
watchLifecycle();
watchKeys();
void boot();
// The first message needs it. It is loaded beside the first calls.
preload('conversation');
