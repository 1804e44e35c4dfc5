#include "tests/analyzers/fixture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numbers>

#include "tests/analyzers/fixture_words.h"
#include "tests/analyzers/gaussian.h"
#include "trace/reader.h"

namespace ampscope::analyzers::testing {

namespace {

using nlohmann::json;
using trace::DType;
using trace::EventKind;

class Builder {
 public:
  explicit Builder(const json& source) : source_(source) {}

  trace::Trace build() {
    run();
    for (const json& line : list("optimizers"))
      optimizer(line.get<std::string>());
    for (const json& line : list("schedules"))
      schedule(line.get<std::string>());
    for (const json& line : list("scalers"))
      scaler(line.get<std::string>());
    name_sites();
    for (const json& line : list("parameters"))
      parameter(line.get<std::string>());
    for (const json& each : list("sites"))
      site(each);
    for (const json& each : list("steps"))
      step(each);
    for (const json& each : list("gradients"))
      gradient(each);
    for (const json& each : list("nonfinite_gradients"))
      nonfinite_gradient(each);
    for (const json& each : list("nonfinite"))
      nonfinite(each);
    for (const json& each : list("numerics"))
      numerics(each);
    for (const json& each : list("writes"))
      write(each);
    for (const json& each : list("series"))
      series(each);
    for (const json& each : list("hidden"))
      hidden(each);
    for (const json& each : list("round_trips"))
      round_trip(each);
    status();
    return std::move(trace_);
  }

 private:
  const json& list(const char* name) const {
    static const json empty = json::array();
    const auto found = source_.find(name);
    return found != source_.end() ? *found : empty;
  }

  void run() {
    const json run = source_.value("run", json::object());
    trace_.run.run_id = "fixture";
    trace_.run.working_directory = "/project/run";
    trace_.run.language = get<std::string>(run, "language", "python");
    trace_.run.command = {"python", "train.py"};
    trace_.run.devices = {get<std::string>(run, "device", "cpu")};
    trace_.run.rank = get<std::int64_t>(run, "rank", trace::none);
    trace_.run.world_size = get<std::int64_t>(run, "world_size", trace::none);
    static const std::map<std::string, trace::Level> levels = {{"ops", trace::Level::ops},
                                                               {"grads", trace::Level::grads},
                                                               {"auto", trace::Level::automatic},
                                                               {"full", trace::Level::full},
                                                               {"shadow", trace::Level::shadow}};
    trace_.run.level = levels.at(get<std::string>(run, "level", "auto"));
  }

  void optimizer(const std::string& text) {
    const Words words(text);
    trace::Optimizer record;
    record.id = static_cast<std::int64_t>(trace_.optimizers.size());
    record.name = words.plain.front();
    record.fused = words.has("fused");
    record.restored = words.has("restored");
    for (const std::string& word : words.plain) {
      if (looks_like_source(word)) record.source = source_of(word);
    }
    trace_.optimizers.push_back(record);
  }

  void schedule(const std::string& text) {
    const Words words(text);
    trace::Schedule record;
    record.id = static_cast<std::int64_t>(trace_.schedules.size());
    record.name = words.plain.front();
    if (const std::string optimizer = words.get("optimizer"); !optimizer.empty())
      record.optimizer = std::stoll(optimizer);
    for (const std::string& word : words.plain) {
      if (looks_like_source(word)) record.source = source_of(word);
    }
    trace_.schedules.push_back(record);
  }

  void scaler(const std::string& text) {
    const Words words(text);
    trace::Scaler record;
    record.id = static_cast<std::int64_t>(trace_.scalers.size());
    record.implementation = words.plain.front();
    record.enabled = !words.has("disabled");
    record.restored = words.has("restored");
    for (const std::string& word : words.plain) {
      if (looks_like_source(word)) record.source = source_of(word);
    }
    trace_.scalers.push_back(record);
  }

  void parameter(const std::string& text) {
    const Words words(text);
    if (words.plain.size() < 2) fail("a parameter is 'name dtype[shape]': '" + text + "'");
    trace::Parameter record;
    record.id = static_cast<std::int64_t>(trace_.parameters.size());
    record.name = words.plain[0];
    const trace::TensorType type = tensor(words.plain[1]);
    record.dtype = type.dtype;
    record.shape = type.shape;
    record.count = 1;
    for (const std::int64_t size : type.shape)
      record.count *= size;
    record.module = record.name.substr(0, record.name.rfind('.'));
    const std::string optimizer = words.get("optimizer");
    record.optimizer = optimizer.empty() ? trace::none : std::stoll(optimizer);
    if (const std::string step = words.get("since"); !step.empty()) record.first_step = std::stoll(step);
    if (const std::string before = words.get("replaces"); !before.empty()) record.replaces = std::stoll(before);
    if (const std::string site = words.get("made_by"); !site.empty()) record.made_by = site_id(site);
    parameters_[record.name] = record.id;
    trace_.parameters.push_back(record);
  }

  void name_sites() {
    std::int64_t id = 0;
    for (const json& each : list("sites")) {
      if (const auto name = each.find("id"); name != each.end()) sites_[name->get<std::string>()] = id;
      ++id;
    }
  }

  std::int64_t site_id(const std::string& name) const {
    const auto found = sites_.find(name);
    if (found == sites_.end()) fail("no site is called '" + name + "'");
    return found->second;
  }

  std::int64_t parameter_id(const std::string& name) const {
    const auto found = parameters_.find(name);
    if (found == parameters_.end()) fail("no parameter is called '" + name + "'");
    return found->second;
  }

  /// "float16[64,128] from=fc1 parameter=fc1.weight grad cuda:0"
  trace::TensorType tensor(const std::string& text) const {
    const Words words(text);
    if (words.plain.empty()) fail("a tensor is 'dtype[shape]': '" + text + "'");
    trace::TensorType type;
    type.device = trace_.run.devices.front();
    const std::string& first = words.plain.front();
    const auto bracket = first.find('[');
    type.dtype = dtype_of(first.substr(0, bracket));
    if (bracket != std::string::npos) {
      std::istringstream sizes(first.substr(bracket + 1, first.size() - bracket - 2));
      for (std::string size; std::getline(sizes, size, ',');)
        type.shape.push_back(std::stoll(size));
    }
    if (const std::string from = words.get("from"); !from.empty()) type.producer = site_id(from);
    if (const std::string name = words.get("parameter"); !name.empty()) type.parameter = parameter_id(name);
    type.requires_grad = words.has("grad");
    return type;
  }

  void site(const json& each) {
    static const std::map<std::string, trace::Phase> phases = {
        {"forward", trace::Phase::forward},     {"backward", trace::Phase::backward},
        {"optimizer", trace::Phase::optimizer}, {"scaler", trace::Phase::scaler},
        {"data", trace::Phase::data},           {"other", trace::Phase::other}};
    static const std::map<std::string, trace::SiteKind> kinds = {{"op", trace::SiteKind::op},
                                                                 {"backward_node", trace::SiteKind::backward_node},
                                                                 {"range", trace::SiteKind::range}};
    trace::Site record;
    record.id = static_cast<std::int64_t>(trace_.sites.size());
    record.name = each.at("op").get<std::string>();
    record.kind = kinds.at(get<std::string>(each, "kind", "op"));
    record.phase = phases.at(get<std::string>(each, "phase", "forward"));
    if (const auto parent = each.find("parent"); parent != each.end())
      record.parent = site_id(parent->get<std::string>());
    if (const auto forward = each.find("forward"); forward != each.end()) {
      record.forward_site = site_id(forward->get<std::string>());
    }
    if (const auto at = each.find("at"); at != each.end()) record.source = source_of(at->get<std::string>());
    if (const auto module = each.find("module"); module != each.end()) {
      record.has_module = true;
      record.module = module->get<std::string>();
      record.module_class = get<std::string>(each, "class", "");
    }
    record.api = get<std::string>(each, "api", "");
    const json arguments = each.value("api_arguments", json::object());
    for (const auto& [name, value] : arguments.items()) {
      record.api_arguments[name] = number_of(value);
    }
    if (const auto autocast = each.find("autocast"); autocast != each.end()) {
      record.autocast = true;
      record.autocast_dtype = dtype_of(autocast->get<std::string>());
      record.autocast_device = "cpu";
    }
    record.grad_enabled = get<bool>(each, "grad", record.phase == trace::Phase::forward);
    record.in_recompute = get<bool>(each, "recompute", false);
    record.traced = get<bool>(each, "traced", false);
    record.autocast_cache = get<bool>(each, "autocast_cache", record.autocast);
    record.autocast_elsewhere = get<bool>(each, "autocast_elsewhere", false);
    record.thread = get<int>(each, "thread", 0);
    for (const json& text : each.value("in", json::array()))
      record.inputs.push_back(tensor(text.get<std::string>()));
    for (const json& text : each.value("out", json::array()))
      record.outputs.push_back(tensor(text.get<std::string>()));
    record.compute_dtype = record.outputs.empty() ? DType::unknown : record.outputs.front().dtype;
    if (const auto compute = each.find("compute"); compute != each.end()) {
      record.compute_dtype = dtype_of(compute->get<std::string>());
    }
    for (const json& scalar : each.value("scalars", json::array()))
      record.scalars.push_back(number_of(scalar));
    record.scalar_names = get<std::vector<std::string>>(each, "scalar_names", {});
    trace::SiteTotals totals;
    totals.site = record.id;
    totals.calls = get<std::int64_t>(each, "calls", 1);
    totals.steps = get<std::int64_t>(each, "steps", 1);
    totals.first_step = get<std::int64_t>(each, "first_step", 0);
    totals.last_step = totals.first_step + totals.steps - 1;
    totals.checked_calls = get<std::int64_t>(each, "checked_calls", totals.calls);
    totals.time_ns = get<std::int64_t>(each, "time_ns", 0);
    totals.bytes = get<std::int64_t>(each, "bytes", 0);
    totals.absmax = get<double>(each, "absmax", 0);
    totals.failed_calls = get<std::int64_t>(each, "failed_calls", 0);
    totals.first_failed_step = totals.failed_calls > 0 ? get<std::int64_t>(each, "failed_at", 0) : trace::none;
    trace_.sites.push_back(std::move(record));
    trace_.totals.push_back(totals);
  }

  trace::ProtocolEvent event(const std::string& text) const {
    static const std::map<std::string, EventKind> kinds = {{"scale_loss", EventKind::scale_loss},
                                                           {"backward", EventKind::backward},
                                                           {"unscale", EventKind::unscale},
                                                           {"gradient_read", EventKind::gradient_read},
                                                           {"gradient_write", EventKind::gradient_write},
                                                           {"gradient_clear", EventKind::gradient_clear},
                                                           {"optimizer_step", EventKind::optimizer_step},
                                                           {"optimizer_skip", EventKind::optimizer_skip},
                                                           {"scaler_update", EventKind::scaler_update},
                                                           {"schedule_step", EventKind::schedule_step},
                                                           {"parameter_write", EventKind::parameter_write},
                                                           {"scale_read", EventKind::scale_read},
                                                           {"loss_read", EventKind::loss_read},
                                                           {"refusal", EventKind::refusal}};
    namespace flag = trace::event_flag;
    static const std::map<std::string, std::uint32_t> flags = {
        {"autocast_float16", flag::autocast | flag::autocast_float16},
        {"autocast_bfloat16", flag::autocast | flag::autocast_bfloat16},
        {"scaled", flag::scaled},
        {"found_inf", flag::found_inf},
        {"first_use", flag::first_use},
        {"through_scaler", flag::through_scaler},
        {"create_graph", flag::create_graph},
        {"fused", flag::fused},
        {"gradients_only", flag::gradients_only},
        {"nonfinite_gradients", flag::nonfinite_gradients},
        {"stale_nonfinite", flag::stale_nonfinite},
        {"added", flag::added},
        {"given_gradient", flag::given_gradient},
        {"inside_step", flag::inside_step},
        {"by_inverse_scale", flag::by_inverse_scale},
        {"replaced", flag::replaced},
        {"fresh_nonfinite", flag::fresh_nonfinite},
        {"to_number", flag::to_number},
        {"other_divisor", flag::other_divisor},
        {"next_iteration", flag::next_iteration},
        {"unscaled_twice", flag::unscaled_twice},
        {"stepped_twice", flag::stepped_twice},
        {"unscaled_late", flag::unscaled_late},
        {"half_gradients", flag::half_gradients},
        {"no_gradients", flag::no_gradients},
        {"nothing_to_update", flag::nothing_to_update},
        {"never_scaled", flag::never_scaled},
        {"needs_closure", flag::needs_closure}};
    const Words words(text);
    const auto kind = kinds.find(words.plain.empty() ? "" : words.plain.front());
    if (kind == kinds.end()) fail("no event is called '" + text + "'");
    trace::ProtocolEvent result;
    result.kind = kind->second;
    for (std::size_t i = 1; i < words.plain.size(); ++i) {
      const auto flag = flags.find(words.plain[i]);
      if (flag == flags.end()) fail("no flag is called '" + words.plain[i] + "' in '" + text + "'");
      result.flags |= flag->second;
    }
    if (const std::string object = words.get("object"); !object.empty()) result.object = std::stoll(object);
    const bool of_scaler = result.kind == EventKind::scaler_update || result.kind == EventKind::scale_loss;
    if (result.object == trace::none && of_scaler) result.object = 0;
    if (const std::string site = words.get("site"); !site.empty()) result.site = site_id(site);
    std::istringstream optimizers(words.get("optimizers"));
    for (std::string id; std::getline(optimizers, id, ',');)
      result.optimizers |= std::uint64_t{1} << std::stoul(id);
    // Without a list, "added" is of all optimizers that the pass reached.
    if ((result.flags & flag::added) != 0) result.added = result.optimizers;
    if (const std::string added = words.get("added"); !added.empty()) {
      result.flags |= flag::added;
      std::istringstream ids(added);
      for (std::string id; std::getline(ids, id, ',');)
        result.added |= std::uint64_t{1} << std::stoul(id);
    }
    return result;
  }

  void step(const json& each) {
    trace::StepPattern pattern;
    for (const json& text : each.at("do"))
      pattern.events.push_back(event(text.get<std::string>()));
    const auto times = get<std::int64_t>(each, "times", 1);
    auto known = std::find_if(trace_.patterns.begin(), trace_.patterns.end(),
                              [&](const trace::StepPattern& other) { return other.events == pattern.events; });
    if (known == trace_.patterns.end()) {
      pattern.id = static_cast<std::int64_t>(trace_.patterns.size());
      known = trace_.patterns.insert(trace_.patterns.end(), std::move(pattern));
    }
    const std::int64_t first = steps_;
    trace_.step_runs.push_back({first, times, known->id});
    steps_ += times;
    for (std::int64_t at = first; at < first + times; ++at) {
      for (const trace::ProtocolEvent& happened : known->events) {
        if (happened.kind == EventKind::scaler_update) update(happened, at);
      }
    }
  }

  /// The scaler's arithmetic with powers of two, which is exact whatever the order of rounding.
  void update(const trace::ProtocolEvent& happened, std::int64_t at) {
    const json settings = source_.value("scaler", json::object());
    if (trace_.scalers.empty()) trace_.scalers.push_back({0, "torch.amp.GradScaler", {}, true, {}, false});
    const auto id = static_cast<std::size_t>(happened.object);
    while (scale_.size() <= id) {
      scale_.push_back(get<float>(settings, "init", 65536.0F));
      tracker_.push_back(0);
    }
    trace::ScalerUpdate record;
    record.step = at;
    record.scaler = happened.object;
    record.growth_factor = get<double>(settings, "growth", 2.0);
    record.backoff_factor = get<double>(settings, "backoff", 0.5);
    record.growth_interval = get<std::int32_t>(settings, "interval", 2000);
    record.found_inf = (happened.flags & trace::event_flag::found_inf) != 0 ? 1.0F : 0.0F;
    // What the program does to the scale besides: before the update of a step, or by update(new_scale).
    const std::string step = std::to_string(at);
    scale_[id] = get<float>(settings.value("set", json::object()), step.c_str(), scale_[id]);
    record.scale_before = scale_[id];
    record.tracker_before = tracker_[id];
    if (const json assigned = settings.value("assign", json::object()); assigned.contains(step)) {
      record.assigned = true;
      scale_[id] = assigned.at(step).get<float>();
    } else if (record.found_inf != 0) {
      scale_[id] = static_cast<float>(scale_[id] * record.backoff_factor);
      tracker_[id] = 0;
    } else if (++tracker_[id] == record.growth_interval) {
      scale_[id] = static_cast<float>(scale_[id] * record.growth_factor);
      tracker_[id] = 0;
    }
    record.scale_after = scale_[id];
    record.tracker_after = tracker_[id];
    trace_.scaler_updates.push_back(record);
  }

  void gradient(const json& each) {
    trace::GradientWindow record;
    record.first_step = each.at("steps").at(0).get<std::int64_t>();
    record.last_step = each.at("steps").at(1).get<std::int64_t>();
    record.steps = record.last_step - record.first_step + 1;
    record.scale_min = record.scale_max = get<double>(each, "scale", 1.0);
    record.backward_dtype = dtype_of(get<std::string>(each, "through", "float16"));
    record.stats = stats_from_json(each.at("values"));
    record.nonfinite_steps = record.stats.nonfinite() != 0 ? 1 : 0;
    for (const std::string& name : names_of(each.at("parameter"))) {
      record.parameter = parameter_id(name);
      trace_.gradients.push_back(record);
    }
  }

  static std::vector<std::string> names_of(const json& value) {
    return value.is_array() ? value.get<std::vector<std::string>>() : std::vector{value.get<std::string>()};
  }

  void nonfinite_gradient(const json& each) {
    trace::NonfiniteGradient record;
    record.step = each.at("step").get<std::int64_t>();
    record.parameter = parameter_id(each.at("parameter").get<std::string>());
    record.count = trace_.parameters[static_cast<std::size_t>(record.parameter)].count;
    record.nan = get<std::int64_t>(each, "nan", 0);
    record.infinite = get<std::int64_t>(each, "infinite", 0);
    trace_.nonfinite_gradients.push_back(record);
  }

  std::vector<trace::WitnessTensor> witnesses(const json& each) const {
    std::vector<trace::WitnessTensor> result;
    for (const json& tensor_json : each) {
      trace::WitnessTensor witness;
      witness.type = tensor(tensor_json.at("type").get<std::string>());
      witness.looked_at = get<bool>(tensor_json, "looked_at", true);
      if (witness.looked_at) witness.stats = stats_from_json(tensor_json);
      witness.argument = get<std::string>(tensor_json, "argument", "");
      witness.finite_before = get<bool>(tensor_json, "finite_before", false);
      witness.earlier_step = get<bool>(tensor_json, "earlier_step", false);
      result.push_back(std::move(witness));
    }
    return result;
  }

  void nonfinite(const json& each) {
    static const std::map<std::string, trace::OriginKind> kinds = {{"producer", trace::OriginKind::producer},
                                                                   {"propagator", trace::OriginKind::propagator},
                                                                   {"input", trace::OriginKind::input},
                                                                   {"unknown", trace::OriginKind::unknown},
                                                                   {"absorber", trace::OriginKind::absorber}};
    trace::NonfiniteEvent record;
    record.order = static_cast<std::int64_t>(trace_.nonfinite_events.size());
    record.step = each.at("step").get<std::int64_t>();
    record.micro_batch = get<std::int64_t>(each, "micro_batch", 0);
    record.site = site_id(each.at("site").get<std::string>());
    record.kind = kinds.at(each.at("kind").get<std::string>());
    record.compute_dtype = trace_.sites[static_cast<std::size_t>(record.site)].compute_dtype;
    record.inputs = witnesses(each.value("in", json::array()));
    record.outputs = witnesses(each.value("out", json::array()));
    for (const json& scalar : each.value("scalars", json::array()))
      record.scalars.push_back(number_of(scalar));
    record.times_zero = get<std::int64_t>(each, "times_zero", 0);
    if (const auto replay = each.find("replay"); replay != each.end()) {
      record.replay.done = true;
      record.replay.precision = get<std::string>(*replay, "precision", "fp32");
      record.replay.finite = replay->at("finite").get<bool>();
      record.replay.absmax = get<double>(*replay, "absmax", 0);
    }
    trace::SiteTotals& totals = trace_.totals[static_cast<std::size_t>(record.site)];
    if (totals.first_nonfinite_step == trace::none) totals.first_nonfinite_step = record.step;
    totals.last_nonfinite_step = record.step;
    ++totals.nonfinite_calls;
    trace_.nonfinite_events.push_back(std::move(record));
  }

  void numerics(const json& each) {
    trace::SiteNumerics record;
    record.site = site_id(each.at("site").get<std::string>());
    record.step = each.at("step").get<std::int64_t>();
    const trace::Site& site = trace_.sites[static_cast<std::size_t>(record.site)];
    record.dtype = site.outputs.empty() ? site.compute_dtype : site.outputs.front().dtype;
    record.stats = stats_from_json(each.at("values"));
    trace_.numerics.push_back(std::move(record));
  }

  void write(const json& each) {
    static const std::vector<std::string> kinds = {"cast", "add", "multiply", "lerp", "parameter", "distribution"};
    trace::WriteSample record;
    record.site = site_id(each.at("site").get<std::string>());
    if (each.contains("parameter")) record.parameter = parameter_id(each["parameter"].get<std::string>());
    if (each.contains("writer")) record.writer = site_id(each["writer"].get<std::string>());
    const auto kind = std::find(kinds.begin(), kinds.end(), each.at("kind").get<std::string>());
    record.kind = static_cast<trace::WriteKind>(kind - kinds.begin());
    const trace::Site& site = trace_.sites[static_cast<std::size_t>(record.site)];
    const std::string fallback = trace::dtype_name(site.outputs.empty() ? site.compute_dtype : site.outputs[0].dtype);
    record.dtype = dtype_of(get<std::string>(each, "dtype", fallback));
    for (const auto& [name, member] : {std::pair{"gradient", &trace::WriteSample::gradient},
                                       {"copied", &trace::WriteSample::copied},
                                       {"whole", &trace::WriteSample::whole},
                                       {"evenly_spaced", &trace::WriteSample::evenly_spaced}})
      record.*member = get<bool>(each, name, false);
    record.calls = get<std::int64_t>(each, "calls", 1);
    record.concerned = record.elements = get<std::int64_t>(each, "concerned", 256);
    record.changed = get<std::int64_t>(each, "changed", 0);
    record.idle_calls = get<std::int64_t>(each, "idle_calls", record.changed == 0 ? record.calls : 0);
    record.moved = get<std::int64_t>(each, "moved", record.changed);
    record.since = get<std::int64_t>(each, "since", 0);
    const auto count = static_cast<double>(record.concerned);
    record.value_sum = count * (record.latest_value = get<double>(each, "value", 1));
    record.contribution_sum = count * (record.latest_contribution = get<double>(each, "contribution", 1));
    record.outward_sum = record.contribution_sum * get<double>(each, "outward", 1);
    record.distance_sum = get<double>(each, "distance", 0) * count;
    record.distinct = get<std::int64_t>(each, "distinct", 0);
    record.distinct_kept = get<std::int64_t>(each, "distinct_kept", 0);
    record.largest = get<double>(each, "largest", 0);
    for (const json& step : each.at("steps")) {
      record.step = step.get<std::int64_t>();
      trace_.writes.push_back(record);
    }
  }

  void series(const json& each) {
    trace::SeriesPoint record;
    record.name = each.at("name").get<std::string>();
    record.first_step = each.at("steps").at(0).get<std::int64_t>();
    record.last_step = each.at("steps").at(1).get<std::int64_t>();
    record.count = get<std::int64_t>(each, "count", record.last_step - record.first_step + 1);
    record.nonfinite = get<std::int64_t>(each, "nonfinite", 0);
    record.object = get<std::int64_t>(each, "object", trace::none);
    record.mean = record.min = record.max = get<double>(each, "mean", 0);
    if (!get<bool>(each, "each", false)) {
      trace_.series.push_back(record);
      return;
    }
    record.count = 1;
    for (std::int64_t step = record.first_step, last = record.last_step; step <= last; ++step) {
      record.first_step = record.last_step = step;
      trace_.series.push_back(record);
    }
  }

  void hidden(const json& each) {
    trace_.hidden_regions.push_back({each.at("kind").get<std::string>(), get<std::string>(each, "name", ""),
                                     get<std::int64_t>(each, "calls", 1), get<std::int64_t>(each, "time_ns", 0),
                                     get<std::int64_t>(each, "first_step", 0)});
  }

  void round_trip(const json& each) {
    trace::RoundTrip trip;
    trip.step = get<std::int64_t>(each, "step", 0);
    trip.down = site_id(each.at("down").get<std::string>());
    trip.up = site_id(each.at("up").get<std::string>());
    if (each.contains("parameter")) trip.parameter = parameter_id(each.at("parameter").get<std::string>());
    trip.elements = get<std::int64_t>(each, "elements", 0);
    trip.compared = get<std::int64_t>(each, "compared", trip.elements);
    trip.changed = get<std::int64_t>(each, "changed", 0);
    trip.overflowed = get<std::int64_t>(each, "overflowed", 0);
    trip.vanished = get<std::int64_t>(each, "vanished", 0);
    trace_.round_trips.push_back(trip);
  }

  void status() {
    const json status = source_.value("status", json::object());
    trace_.status.steps = steps_;
    trace_.status.events_seen = get<std::int64_t>(status, "events_seen", 1000);
    trace_.status.events_dropped = get<std::int64_t>(status, "events_dropped", 0);
    trace_.status.sites_dropped = get<std::int64_t>(status, "sites_dropped", 0);
    trace_.status.elapsed_ns = get<std::int64_t>(status, "elapsed_ns", 1'000'000'000);
    trace_.status.switched_off_because = get<std::string>(status, "switched_off_because", "");
    trace_.status.switched_off_at_step = get<std::int64_t>(status, "switched_off_at_step", trace::none);
    if (const auto lost = status.find("bytes_lost"); lost != status.end()) {
      trace_.damage.truncated = true;
      trace_.damage.bytes_total = 100'000;
      trace_.damage.bytes_read = 100'000 - lost->get<std::uint64_t>();
    }
    trace_.end = trace::RunEnd{"exit", "", 0};
  }

  const json& source_;
  trace::Trace trace_;
  std::map<std::string, std::int64_t> sites_;
  std::map<std::string, std::int64_t> parameters_;
  std::int64_t steps_ = 0;
  std::vector<float> scale_;
  std::vector<std::int32_t> tracker_;
};

json parse(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) fail("cannot open " + path.string());
  return json::parse(file, nullptr, true, true);
}

}  // namespace

trace::TensorStats stats_from_json(const json& object) {
  trace::TensorStats stats;
  stats.nan = get<std::uint64_t>(object, "nan", 0);
  stats.positive_infinity = get<std::uint64_t>(object, "+inf", 0);
  stats.negative_infinity = get<std::uint64_t>(object, "-inf", 0);
  stats.zero = get<std::uint64_t>(object, "zero", 0);
  const json exponents = object.value("exponents", json::object());
  for (const auto& [exponent, count] : exponents.items()) {
    stats.exponents.add(std::stoi(exponent), count.get<std::uint64_t>());
  }
  if (const auto gaussian = object.find("gaussian"); gaussian != object.end()) {
    std::optional<int> smallest;
    if (const auto cut = object.find("smallest"); cut != object.end()) smallest = cut->get<int>();
    const double flushed = add_gaussian(stats, gaussian->get<double>(), object.at("of").get<double>(), smallest);
    stats.zero += static_cast<std::uint64_t>(std::llround(flushed));
  }
  for (std::size_t i = 0; i < stats.exponents.counts.size(); ++i) {
    const double middle = 1.5 * std::exp2(stats.exponents.first + static_cast<int>(i));
    stats.sum_squares += static_cast<double>(stats.exponents.counts[i]) * middle * middle;
    stats.absmax = middle;
  }
  const std::uint64_t known = stats.exponents.total() + stats.zero + stats.nonfinite();
  stats.count = std::max(get<std::uint64_t>(object, "count", known), known);
  // A tensor of which only the size and the largest value matter.
  stats.absmax = get<double>(object, "absmax", stats.absmax);
  stats.sum_squares = get<double>(object, "sum_squares", stats.sum_squares);
  if (stats.has_finite()) {
    stats.max = stats.absmax;
    stats.min = -stats.absmax;
    if (const auto least = object.find("min"); least != object.end()) stats.min = number_of(*least);
    if (const auto most = object.find("max"); most != object.end()) stats.max = number_of(*most);
  }
  return stats;
}

trace::Trace trace_from_json(const json& object) {
  return Builder(object).build();
}

Fixture load_fixture(const std::filesystem::path& path) {
  Fixture fixture;
  json description;
  if (path.extension() == ".ampscope") {
    auto read = trace::read_trace(path.string());
    if (auto* error = std::get_if<trace::ReadError>(&read)) fail(error->message);
    fixture.traces.push_back(std::get<trace::Trace>(std::move(read)));
    std::filesystem::path beside = path;
    description = parse(beside.replace_extension(".expect.json"));
    fixture.expect = description;
  } else {
    description = parse(path);
    if (const auto traces = description.find("traces"); traces != description.end()) {
      for (const json& each : *traces)
        fixture.traces.push_back(trace_from_json(each));
    } else {
      fixture.traces.push_back(trace_from_json(description.at("trace")));
    }
    fixture.expect = description.at("expect");
  }
  if (const auto options = description.find("options"); options != description.end()) {
    fixture.options.parameters = options->get<std::map<std::string, std::map<std::string, double>>>();
  }
  return fixture;
}

}  // namespace ampscope::analyzers::testing
